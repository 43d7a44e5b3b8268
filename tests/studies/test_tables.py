"""Tables look the same on a terminal and as Markdown."""

from types import SimpleNamespace

from rich.console import Console

from studies.tables import Table, band, of_breakdowns


def test_markdown_and_terminal_show_the_same_rows():
    table = Table("A title", ("problem", "solver", "ms"))
    for cells in (("letter", "larank", "0.5"), ("letter", "[svc]", "-"), ("usps", "svc", "2.0")):
        table.add(*cells)
    table.end_group()
    markdown = table.as_markdown()
    assert markdown.splitlines()[2:4] == ["| problem | solver | ms |", "| :--- | :--- | ---: |"]
    assert "| letter | [svc] | - |" in markdown
    shown = table.on_terminal()
    assert [row.end_section for row in shown.rows] == [False, False, True]
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
    rows = [
        SimpleNamespace(problem="letter", solver="larank", train=0.5, breakdown={"map": 0.25}),
        SimpleNamespace(problem="usps", solver="svc", train=2.0, breakdown={}),
    ]
    table = of_breakdowns("Where the time goes", rows, "solver")
    assert list(table.headings) == ["problem", "solver", "map", "train s"]
    assert [cells[2] for cells, _ in table.rows] == ["0.250", "-"]


def test_bands_may_be_open():
    assert [band(*limits) for limits in ((-float("inf"), 3), (2, float("inf")), (1, 2))] == ["≤ 3", "≥ 2", "1–2"]
