"""What damaged files, extreme numbers, kills and limits may do to the library: refuse, and nothing worse."""
