"""Learning under ambiguous supervision: labels that are sets of candidates, and what can be built on them."""
