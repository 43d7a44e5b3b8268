"""Structured outputs: sequence labelling, and models of the user's own."""
