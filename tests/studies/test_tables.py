"""Tables look as their rows say, on a terminal and as Markdown."""

from dataclasses import dataclass

import pytest
from rich.console import Console

from studies.tables import Table, band, digits, figure, item, of_breakdowns, of_rows


@dataclass
class Row:
    problem: str
    solver: str
    train: float | None
    breakdown: dict[str, float]


ROWS = [Row("letter", "larank", 0.5, {"map": 0.25}), Row("letter", "[svc]", None, {}), Row("usps", "svc", 2.0, {})]
COLUMNS = {"problem": figure("problem"), "solver": figure("solver"), "ms": figure("train", ".1f", 1000)}


def test_markdown_and_terminal_show_the_same_rows():
    table = of_rows("A title", COLUMNS, ROWS)
    markdown = table.as_markdown()
    assert markdown.splitlines()[2:4] == ["| problem | solver | ms |", "| :--- | :--- | ---: |"]
    assert "| letter | [svc] | - |" in markdown
    shown = table.on_terminal()
    assert shown.row_count == 3
    assert [row.end_section for row in shown.rows] == [False, True, True]
    console = Console(width=80)
    with console.capture() as capture:
        console.print(shown)
    assert "letter [svc] -" in " ".join(capture.get().split())


def test_a_row_that_is_too_short_is_filled_and_a_heading_is_bold():
    table = Table("A title", ("", "error"), ["A note."])
    table.add("letter", style="bold")
    table.add("ours", "2.8")
    assert table.as_markdown().splitlines()[4:] == ["| **letter** |  |", "| ours | 2.8 |", "", "A note."]


def test_breakdowns_have_a_column_for_every_part_some_row_has():
    table = of_breakdowns("Where the time goes", [ROWS[0], ROWS[2]], "solver")
    assert list(table.headings) == ["problem", "solver", "map", "train s"]
    assert [cells[2] for cells, _ in table.rows] == ["0.250", "-"]
    assert item("breakdown", "map", ".1f")(ROWS[0]) == "0.2"


@pytest.mark.parametrize(("value", "shown"), [(1234.5, "1234"), (12.345, "12.3"), (0.012345, "0.0123"), (0.0, "0")])
def test_numbers_have_three_digits_and_no_exponent(value, shown):
    assert digits(value) == shown


def test_bands_may_be_open():
    assert [band(*limits) for limits in ((-float("inf"), 3), (2, float("inf")), (1, 2))] == ["≤ 3", "≥ 2", "1–2"]
