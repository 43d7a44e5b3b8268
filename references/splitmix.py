"""The random numbers of the core, in Python."""


class SplitMix:
    """The random numbers of the core."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        return ((z >> 32) * n) >> 32
