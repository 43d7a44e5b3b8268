"""What studies share: claims are judged, rows declare their columns, and findings become tables, lines and JSON."""

import json
import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from studies.papers.experiment import Entry, Published, timed_fit
from studies.study import Claim, Findings, Scope, is_so, plain
from studies.tables import Table, band, column, columns_of, derived, digits, of_breakdowns, of_rows, yes


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (Claim("took 0.5", 0.5, most=0.5), "took 0.5; bar 0.5, met"),
        (Claim("took 0.6", 0.6, most=0.5), "took 0.6; bar 0.5, missed"),
        (Claim("3 right", 3, least=4), "3 right; bar 4, missed"),
        (Claim("1.5 %", 1.5, 1, 2), "1.5 %; bar 1–2, met"),
        (Claim("2.5 %", 2.5, 1, 2), "2.5 %; bar 1–2, missed"),
        (Claim("unknown", math.nan, most=1), "unknown; bar 1, undecided"),
        (Claim("both", 0.4, most=0.5, also=0.45), "both; bar 0.5, met"),
        (Claim("both", 0.6, most=0.5, also=0.55), "both; bar 0.5, missed"),
        (
            Claim("apart", 0.4, most=0.5, also=0.6),
            "apart; bar 0.5, undecided (the two disagree; run it on a quiet machine)",
        ),
        (Claim("0.4", 0.4, most=0.5, bar="half"), "0.4; bar half, met"),
        (is_so("falls", True, "as the paper's"), "falls; bar as the paper's, met"),
        (is_so("rises", False, "as the paper's"), "rises; bar as the paper's, missed"),
        (is_so("one split", None, "more than chance"), "one split; bar more than chance, undecided"),
    ],
)
def test_a_claim_is_met_missed_or_undecided(claim: Claim, said: str) -> None:
    assert str(claim) == said
    verdict = {"met": True, "missed": False}.get(said.rpartition(", ")[2])
    assert claim.holds is verdict
    assert claim.to_dict()["text"] == said
    assert claim.to_dict()["holds"] is verdict


@dataclass(frozen=True)
class Row:
    problem: str = column("problem")
    train: float = column("train ms", ".1f", 1000)
    rival: float | None = column("rival", ".2f")

    @derived("over", ".1%")
    def over(self) -> float:
        return self.train / (self.rival or 1)

    holds: bool = column("holds", yes)
    hidden: float = math.nan
    parts: dict[str, float] = field(default_factory=dict)


def test_a_row_says_how_its_columns_look_in_the_order_of_their_definition() -> None:
    table = of_rows("T", [Row("letter", 0.5, 2.0, True), Row("letter", 0.25, None, False), Row("usps", 1, 1, True)])
    assert list(columns_of(Row)) == list(table.headings) == ["problem", "train ms", "rival", "over", "holds"]
    assert [cells for cells, _ in table.rows] == [
        ("letter", "500.0", "2.00", "25.0%", "yes"),
        ("letter", "250.0", "-", "25.0%", "NO"),
        ("usps", "1000.0", "1.00", "100.0%", "yes"),
    ]
    assert table.ends == {1, 2}
    assert of_rows("none", []).rows == []


def test_numbers_for_json_have_derived_columns_and_no_nan() -> None:
    found = plain({"rows": [Row("letter", 0.5, 2.0, True, parts={"a": np.float32(1.5)})], 3: np.arange(2)})
    row = {"problem": "letter", "train": 0.5, "rival": 2.0, "holds": True, "hidden": None, "parts": {"a": 1.5}}
    assert found == {"rows": [{**row, "over": 0.25}], "3": [0, 1]}
    json.dumps(found, allow_nan=False)


# ---- Tables ----


def test_markdown_and_terminal_show_the_same_rows() -> None:
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


def test_a_row_that_is_too_short_is_filled_and_a_heading_is_bold() -> None:
    table = Table("A title", ("", "error"), ["A note."])
    table.add("letter", style="bold")
    table.add("ours", "2.8")
    assert table.as_markdown().splitlines()[4:] == ["| **letter** |  |", "| ours | 2.8 |", "", "A note."]


def test_breakdowns_have_a_column_for_every_part_some_row_has() -> None:
    rows = [
        SimpleNamespace(problem="letter", solver="larank", train=0.5, breakdown={"map": 0.25}),
        SimpleNamespace(problem="usps", solver="svc", train=2.0, breakdown={}),
    ]
    table = of_breakdowns("Where the time goes", rows, "solver")
    assert list(table.headings) == ["problem", "solver", "map", "train s"]
    assert [cells[2] for cells, _ in table.rows] == ["0.250", "-"]


@dataclass
class Own(Findings):
    curves: tuple[Any, ...]
    quick: bool = False


def test_findings_have_rows_others_and_fields_of_their_own() -> None:
    found = Own((Row("letter", 1, 1, True),), lines=["what it is"], claims=[Claim("c", 1, most=2)], others={"best": 1})
    found.add(rows=[Row("usps", 1, 1, True)])
    numbers = found.to_dict()
    assert [row["problem"] for row in (*numbers["curves"], *numbers["rows"])] == ["letter", "usps"]
    assert (numbers["best"], numbers["quick"]) == (1, False)
    assert found.to_lines() == ["c; bar 2, met", "what it is"]
    assert not {"claims", "lines", "tables"} & set(numbers)


def test_a_quick_form_is_held_to_nothing() -> None:
    for quick, claims in ((False, 2), (True, 0)):
        found = PUBLISHED.findings(Scope(quick), [], [entry((2.8, 5200))], left_out=["slow"])
        assert (len(found.claims), found.others["quick"], found.others["left_out"]) == (claims, quick, ["slow"])
        assert found.rows["entries"][0].mean("dual") == 5200
        assert found.to_dict()["entries"][0]["paper"] == {"error": 2.8, "dual": 5226}


@pytest.mark.parametrize(("status", "ends"), [("interrupted", True), ("converged", False)])
def test_an_interrupted_training_ends_the_experiment(status: str, ends: bool) -> None:
    model = SimpleNamespace(fit=lambda *data, **options: None, result_=SimpleNamespace(status=status))
    with pytest.raises(KeyboardInterrupt) if ends else nullcontext():
        assert timed_fit(model, [[0.0]], [1]) >= 0


# ---- Published figures ----


@dataclass(frozen=True)
class Run:
    seed: int
    error: float
    dual: float


PUBLISHED = Published(
    columns={"error": "error %", "dual": "dual"},
    rows={"letter": {"ours": {"error": 2.8, "dual": 5226}, "theirs": {"error": 2.4}}},
    expected={("letter", "ours"): {"error": (-math.inf, 3.0), "dual": (5150, 5300)}},
    whole=frozenset({"dual"}),
)


def entry(*runs: tuple[float, float]) -> Entry[Run]:
    return Entry("letter", "ours", tuple(Run(seed, *figures) for seed, figures in enumerate(runs)))


def test_published_figures_stand_beside_mean_extremes_and_what_is_expected() -> None:
    table = PUBLISHED.of_groups("T", [], [entry((2.8, 5200), (3.6, 5210))], quick=False)
    assert [cells for cells, _ in table.rows] == [
        ("letter",),
        ("ours, paper", "2.80", "5226"),
        ("ours, 2 seeds", "3.20", "5205"),
        ("  min", "2.80", "5200"),
        ("  max", "3.60", "5210"),
        ("  expected", "≤ 3", "5150–5300"),
        ("  as expected", "no", "yes"),
        ("theirs, paper", "2.40", "-"),
    ]
    claims = PUBLISHED.claims([entry((2.8, 5200), (3.6, 5210))])
    assert [claim.holds for claim in claims] == [False, True]
    assert str(claims[0]) == "letter, ours: mean error % 3.2; bar 3, missed"


def test_one_run_has_no_extremes_the_quick_form_no_verdict_and_nan_is_a_dash() -> None:
    names = {"letter": ("LETTER", "theirs")}
    table = PUBLISHED.of_groups("T", [], [entry((2.8, math.nan))], quick=True, **names)
    assert [cells for cells, _ in table.rows] == [
        ("LETTER",),
        ("ours, theirs", "2.80", "5226"),
        ("ours, seed 0", "2.80", "-"),
        ("theirs, theirs", "2.40", "-"),
    ]
    (found,) = PUBLISHED.to_dicts([entry((2.8, math.nan))], quick=True)
    assert (found["mean"], found["as_expected"]) == ({"error": 2.8, "dual": None}, None)
    assert PUBLISHED.to_dicts([entry((2.8, 5200))], quick=False)[0]["as_expected"] == {"error": True, "dual": True}
    assert PUBLISHED.as_expected(Entry("usps", "ours", entry((9.0, 1.0)).runs), "error") is None


def test_numbers_have_three_digits_and_no_exponent_and_bands_may_be_open() -> None:
    assert [digits(value) for value in (1234.5, 12.345, 0.012345, 0.0)] == ["1234", "12.3", "0.0123", "0"]
    assert [band(*limits) for limits in ((-math.inf, 3), (2, math.inf), (1, 2))] == ["≤ 3", "≥ 2", "1–2"]
