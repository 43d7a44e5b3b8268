"""Learning from ambiguous supervision: several labels or meanings are offered, and it is not said which is right."""
