"""Large-margin learning at scale."""
