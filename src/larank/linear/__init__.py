"""Linear models: a weight for every feature and class."""
