"""What development needs and the library does not: the hostile campaign, and the list of claims."""
