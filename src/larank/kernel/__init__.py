"""Kernel machines: models made of support patterns and their coefficients."""
