"""`python -m studies`: what it lists, runs and writes, and how it says that it failed."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from studies import __main__ as command
from studies.study import Claim, Findings, Scope, Study
from studies.tables import Table


def findings() -> Findings:
    """Findings with one table and one claim that is missed."""
    table = Table("the [b]table[/b]", ("", "error"), ["a note"])
    table.add("ours", "2.80")
    tables = [table, Table("empty", ("", "error"))]
    return Findings(others={"error": 2.8}, tables=tables, lines=["a line"], claims=[Claim("so", 2.0, most=1.0)])


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The scopes a paper's study and a comparison were run with."""
    seen: list[Any] = []

    def run(scope: Any, say: Any) -> Findings:
        seen.append(scope)
        say("half way")
        return findings()

    study = {"datasets": ("letter", "usps"), "run": run, "title": "Everything again"}
    paper = Study(name="paper", **study, has_seeds=True)
    defaults = {"default_datasets": ("usps",), "quick_datasets": ("letter",), "limit": 9.0}
    rival = Study(name="rival", **study, **defaults, solvers={"ours": None})
    monkeypatch.setattr(command, "STUDIES", {"paper": paper, "rival": rival})
    return seen


def test_without_a_name_all_studies_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    listed = capsys.readouterr().out
    assert command.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert listed.splitlines() == lines
    assert [line.split()[0] for line in lines] == list(command.STUDIES)
    assert all(study.title in line for study, line in zip(command.STUDIES.values(), lines, strict=True))


def test_every_study_has_defaults_among_its_own_names() -> None:
    for name, study in command.STUDIES.items():
        assert study.name == name
        assert {*study.default_datasets, *study.quick_datasets} <= set(study.datasets)
        assert any(solver.is_ours for solver in study.solvers.values()) or not study.solvers


def test_a_study_prints_its_tables_lines_and_progress(runs: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["paper"]) == 0
    out, err = capsys.readouterr()
    assert err == "half way\n"
    assert all(piece in out for piece in ("the [b]table[/b]", "ours", "2.80", "a note", "a line"))
    assert "empty" not in out
    command.main(["rival", "--markdown"])
    assert "| ours | 2.80 |" in capsys.readouterr().out


def test_how_much_is_wanted_is_passed_on(runs: list[Any]) -> None:
    command.main(["paper"])
    command.main(["paper", "--quick", "--seeds", "3", "--datasets", "usps,letter"])
    command.main(["paper", "--problems", "letter"])
    chosen = [replace(scope, options=None) for scope in runs]
    paper = [Scope(), Scope(True, 3, ("usps", "letter"), repeats=1), Scope(datasets=("letter",))]
    assert chosen == [replace(scope, options=None) for scope in paper]
    runs.clear()
    for arguments in ([], ["--quick"], ["--quick", "--repeats", "5", "--datasets", "usps", "letter", "--limit", "7"]):
        command.main(["rival", *arguments])
    assert [replace(scope, options=None, solvers=()) for scope in runs] == [
        Scope(datasets=("usps",), limit=9.0, options=None),
        Scope(datasets=("letter",), repeats=1, quick=True, limit=9.0, options=None),
        Scope(datasets=("usps", "letter"), repeats=5, quick=True, limit=7.0, options=None),
    ]
    assert all(scope.solvers == ("ours",) for scope in runs)


def test_a_claim_that_is_missed_is_an_error_if_that_is_asked(runs: list[Any]) -> None:
    assert command.main(["paper"]) == 0
    assert command.main(["paper", "--check"]) == 1


def test_numbers_and_figures_are_written(runs: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command.main(["rival", "--json", str(tmp_path / "t.json")])
    page = json.loads((tmp_path / "t.json").read_text())
    assert page["numbers"] == {"error": 2.8}
    assert page["lines"] == ["so; bar 1, missed", "a line"]
    assert [claim["holds"] for claim in page["claims"]] == [False]
    (table,) = page["tables"]
    assert (table["headings"], table["rows"]) == (["", "error"], [{"cells": ["ours", "2.80"], "style": ""}])
    drawn = replace(command.STUDIES["paper"], draw=lambda outcome, figure: figure.subplots().plot([1, 2]))
    monkeypatch.setitem(command.STUDIES, "paper", drawn)
    for kind, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        assert command.main(["paper", "--output", str(tmp_path / f"f{kind}")]) == 0
        assert (tmp_path / f"f{kind}").read_bytes().startswith(magic)
    (tmp_path / "book").mkdir()
    assert [command.main([name, "--output", str(tmp_path / "book")]) for name in ("paper", "rival")] == [0, 0]
    assert {path.name for path in (tmp_path / "book").iterdir()} == {"paper.json", "paper.svg", "rival.json"}


def test_versions_commit_and_load_are_recorded_for_every_study(runs, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(command.STUDIES, "rival", replace(command.STUDIES["rival"], libraries=("numpy", "no-such")))
    command.main(["rival", "--output", str(tmp_path / "t.json")])
    about = json.loads((tmp_path / "t.json").read_text())["about"]
    assert about["versions"]["no-such"] == "absent"
    assert {"larank", "numpy", "python", "processor"} <= set(about["versions"])
    assert (about["study"], about["words"][0], len(about["load"])) == ("rival", "rival", 2)
    assert about["commit"]
    assert "before: load average" in capsys.readouterr().out


def test_without_matplotlib_a_plot_is_refused_before_the_work(runs, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(command.STUDIES, "paper", replace(command.STUDIES["paper"], draw=lambda *drawn: None))
    assert command.main(["paper", "--output", str(tmp_path / "f.png")]) == 1
    assert 'pip install "larank[plot]"' in capsys.readouterr().err
    assert runs == []
    assert command.main(["paper", "--output", str(tmp_path / "t.json")]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["paper", "--datasets", "letter,usp"], "paper has no data set 'usp'; it has: letter, usps"),
        (["rival", "--problems", ""], "rival has no data set ''"),
        (["paper", "--output", "f.png"], "is a table"),
        (["paper", "--output", "f.bmp"], "must be one of"),
        (["paper", "--output", "gone/f.json"], "there is no folder"),
        (["paper", "--seeds", "0"], "--seeds: 0: must be at least 1"),
        (["rival", "--repeats", "0"], "--repeats: 0: must be at least 1"),
        (["rival", "--against", "no-such-python"], "'no-such-python' is not an interpreter that can import larank"),
        (["tabel"], "paper, rival"),
    ],
)
def test_wrong_usage_is_said_before_the_work(arguments, said, runs, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert (ended.value.code, runs) == (2, [])
    assert said in " ".join(capsys.readouterr().err.replace("'paper', 'rival'", "paper, rival").split())


@pytest.mark.parametrize(
    ("words", "absent", "wanted"),
    [(["larank-figure2"], "usps", "usps"), (["ambiguous", "--quick"], "pl_lost", "the data sets wanted")],
)
def test_a_study_without_its_data_says_so_in_one_line(words, absent, wanted, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    assert command.main(words) == 1
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"{absent}: absent from the data directory, left out",
        f"error: none of {wanted} is in the data directory; set LARANK_DATA (--debug shows where)",
    ]
    with pytest.raises(FileNotFoundError):
        command.main([*words, "--debug"])


def test_as_a_process_of_its_own() -> None:
    root = Path(command.__file__).parents[1]
    done = subprocess.run([sys.executable, "-m", "studies", "--list"], cwd=root, capture_output=True, timeout=60)
    assert done.stdout.decode().splitlines()[0].startswith("larank-table2  ")
