"""Stand-ins for estimators, and what a study prints, for the tests of papers."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

import larank


def put_in_place(monkeypatch: pytest.MonkeyPatch, stand_in: Any, *estimators: str) -> Any:
    """Let studies train this class, which keeps those it `made`, where they would train these estimators."""
    for name in estimators:
        monkeypatch.setattr(larank, name, stand_in)
    monkeypatch.setattr(stand_in, "made", [])
    return stand_in


def printed(outcome: Any) -> list[str]:
    """The lines of all tables, each with single spaces."""
    console = Console(width=200)
    with console.capture() as capture:
        for table in outcome.to_tables():
            console.print(table.on_terminal())
    return [" ".join(line.split()) for line in capture.get().splitlines()]
