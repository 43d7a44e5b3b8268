"""The experiments of the papers, run again: their tables and figures with our numbers beside the published ones."""
