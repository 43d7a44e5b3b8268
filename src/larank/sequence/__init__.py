"""Sequence labelling: models of chains of tokens."""
