"""Studies of the library: the papers' tables and figures run again, and comparisons with other libraries."""
