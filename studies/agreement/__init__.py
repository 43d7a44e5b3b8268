"""A random campaign: certificates and models against independent optima."""
