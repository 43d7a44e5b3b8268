"""How many examples hypothesis draws for a property that needs more or fewer than the others."""

from hypothesis import settings

GATE_EXAMPLES = 30  # of every other property


def draws(number, **given):
    """Draw `number` examples in the gate, and in proportion with the profiles that draw more."""
    return settings(max_examples=max(1, number * settings.default.max_examples // GATE_EXAMPLES), **given)
