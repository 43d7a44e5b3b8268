"""The package of structured outputs: sequences of labels, and any model a user writes."""
