"""Who listens to the training loop, and what they write."""

import io
import re

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone

from larank import LaRankClassifier, LaSVMClassifier, LinearSGDClassifier
from larank.training import Checkpoint
from larank.training import progress as module
from larank.training.progress import BarProgress, LineProgress, progress_for


class Terminal(io.StringIO):
    def isatty(self):
        return True


def tell(progress, fraction=0.5, primal=10.0):
    at = Checkpoint(seconds=1.5, iterations=3.5, primal=primal, dual=8.0, violation=0.25, exact=False)
    progress.update(at, fraction)


def run(progress, updates=1):
    with progress:
        progress.start("letters")
        for _ in range(updates):
            tell(progress)
        progress.finish("time_limit")


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def screen():
    return Terminal()


@pytest.fixture
def bar(screen):
    return BarProgress(Console(file=screen, force_terminal=True, width=80, color_system=None))


def test_lines_go_to_standard_error_when_it_is_not_a_terminal(capfd):
    progress = progress_for(1)
    assert isinstance(progress, LineProgress)
    run(progress, updates=100)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "larank: training letters",
        "larank: time limit after 3.5 passes, relative gap 2.0e-01, violation 2.5e-01, 1.5 s",
    ]


def test_lines_keep_their_distance_and_with_verbose_2_every_update_has_one(clock, capfd):
    progress = LineProgress(interval=5.0)
    progress.start("letters")
    for second in range(13):
        clock[0] = float(second)
        tell(progress)
    assert len(capfd.readouterr().err.splitlines()) == 1 + 2  # the start, then at 5 and at 10
    run(progress_for(2), updates=7)
    assert len(capfd.readouterr().err.splitlines()) == 1 + 7 + 1
    with pytest.raises(ValueError, match=r"verbose must be .* got -1"):
        progress_for(-1)


@pytest.mark.parametrize(
    ("fraction", "primal", "shown"),
    [
        (0.5, 10.0, r" 50%, .*gap 2\.0e-01"),
        (7.0, 10.0, "100%, "),
        (float("nan"), 10.0, "  0%, "),
        (None, 10.0, "^[^%]*$"),
        (0.5, 0.0, r"gap -8\.0e\+00"),  # absolute: the objective is zero
    ],
)
def test_lines_show_the_fraction_if_it_is_known_and_the_gap(fraction, primal, shown, capfd):
    tell(LineProgress(interval=0.0), fraction, primal)
    assert re.search(shown, capfd.readouterr().err)


def fractions_shown(model, *data, capfd):
    model.fit(*data)
    return re.findall(r"larank: +(\d+)%, ", capfd.readouterr().err)


def test_no_fraction_is_shown_of_a_stream_of_unknown_length(capfd):
    X = np.random.default_rng(0).normal(size=(50, 20_000))  # larger than what small blocks are joined to
    model = LinearSGDClassifier(verbose=2, random_state=0, t0=1e4)
    assert set(fractions_shown(model, [(X, np.arange(50) % 2)] * 3, capfd=capfd)) <= {"100"}


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (LaRankClassifier(), {"max_iter": 2}),
        (LaSVMClassifier(), {"max_iter": 2}),
        (LinearSGDClassifier(max_iter=30, early_stopping=True), {"early_stopping": False}),
    ],
    ids=str,
)
def test_no_fraction_is_shown_if_the_end_depends_on_the_data(model, known, capfd):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 4)), random.integers(0, 2, 300)
    model = clone(model).set_params(verbose=2, random_state=0)
    assert not fractions_shown(model, X, y, capfd=capfd)
    assert "100" in fractions_shown(model.set_params(**known), X, y, capfd=capfd)


def test_finishing_before_the_first_update_is_allowed(bar, screen, capfd):
    for progress in (LineProgress(), bar):
        run(progress, updates=0)
    assert "larank: time limit\n" in capfd.readouterr().err
    assert "time limit\n" in screen.getvalue()


def test_a_terminal_that_can_draw_a_bar_gets_one_and_a_log_does_not(screen, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert type(progress_for(1)) is LineProgress
    monkeypatch.setattr("sys.stderr", screen)
    for term, kind in (("xterm", BarProgress), ("dumb", LineProgress)):
        monkeypatch.setenv("TERM", term)
        assert type(progress_for(1)) is kind


def test_the_bar_leaves_how_training_ended(bar, screen):
    run(bar)
    lines = screen.getvalue().splitlines()
    assert lines[0].endswith("training letters")
    assert lines[-1].endswith("time limit after 3.5 passes, relative gap 2.0e-01, violation 2.5e-01, 1.5 s")


def test_the_bar_never_moves_back(bar):
    seen = []
    with bar:
        bar.start("letters")
        for fraction in (0.2, 0.6, 0.4, float("nan"), None, 0.7, 3.0):
            tell(bar, fraction)
            seen.append(bar.fraction)
    assert seen == [0.2, 0.6, 0.6, 0.6, 0.6, 0.7, 1.0]


def test_an_exception_gives_the_terminal_back(bar, screen):
    def fail():
        with bar:
            bar.start("letters")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert screen.getvalue().rstrip().endswith("\x1b[2K")  # the bar's line is wiped
    assert screen.getvalue().count("\x1b[?25h") == 1  # and the cursor is back


def test_control_characters_are_escaped_and_markup_and_emoji_names_stay(bar, screen, capfd):
    for progress in (LineProgress(), bar):
        with progress:
            progress.start("a\x1b[2Jb\x07\n:smile: [red]")
    shown = r"training a\x1b[2Jb\x07\n:smile: [red]"
    assert capfd.readouterr().err == f"larank: {shown}\n"
    assert screen.getvalue().splitlines()[0] == shown
