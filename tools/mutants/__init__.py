"""Mutants of the core of trust: small seeded faults in the source, each of which some test of the gate must notice."""
