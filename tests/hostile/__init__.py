"""What hostile input must not do."""
