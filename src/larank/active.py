"""Which example to ask about next."""
