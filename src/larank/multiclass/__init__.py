"""Multiclass large-margin classifiers."""
