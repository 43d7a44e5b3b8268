"""What training may take at most, as a share of a rival's time in the same run."""

from __future__ import annotations

from collections.abc import Mapping

Bars = Mapping[tuple[str, str], float]
"""By problem and rival."""


def judge(solver: str, ratios: Mapping[str, Mapping[str, float]], bars: Bars) -> list[str]:
    """How its ratios, by problem and rival, stand to the bars: a line for each that can be told."""
    lines = []
    for (problem, rival), bar in bars.items():
        ratio = ratios.get(problem, {}).get(rival)
        if ratio is not None:
            said = "met" if ratio <= bar else "missed"
            lines.append(f"{problem}: {solver} takes {ratio:.3f} of {rival}'s training time; bar {bar:g}, {said}")
    return lines
