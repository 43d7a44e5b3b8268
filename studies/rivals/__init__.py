"""Comparisons of the library with others, with older versions of itself, and with itself under other settings."""
