"""What a person sees while a solver trains: a live bar on a terminal, plain lines elsewhere, or nothing.

Everything goes to standard error. The training loop talks to one small interface:

    with progress_for(verbose) as progress:
        progress.start("crammer-singer, 16000 examples")
        progress.update(Checkpoint(seconds=0.1, iterations=1.0, primal=9.0, dual=4.0, ...), fraction=0.5)
        progress.finish("converged")
"""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.table import Column
from rich.text import Text

from larank.training.result import Checkpoint


def printable(text: str, kept: str = "") -> str:
    """Return a text with an escape such as ``\\x1b`` for each character that a terminal would obey or could not show.

    All that names labels, files or columns on a terminal passes through this function. Characters in `kept` stay.
    """
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode() for each in text
    )


class Progress:
    """The silent listener, and the interface of the others."""

    def start(self, description: str) -> None:
        """Begin; `description` says what is being trained on what."""

    def update(self, at: Checkpoint, fraction: float | None) -> None:
        """Tell where training stands.

        Parameters
        ----------
        at : Checkpoint
            The point of the history that training has come to.
        fraction : float or None
            How much of the way is done, between 0 and 1; None when nobody can tell.
        """

    def finish(self, status: str) -> None:
        """Training has ended, with the status that `Result` reports."""

    def close(self) -> None:
        """Give the terminal back, whatever happened."""

    def __enter__(self) -> Self:
        """Return this listener; leaving the block closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, also after an exception."""
        self.close()


class LineProgress(Progress):
    """Plain lines for logs and pipes: one at the start, one at the end, and some in between."""

    def __init__(self, interval: float = 5.0) -> None:
        """Leave at least `interval` seconds between two lines; with 0 every update is written."""
        self._interval = interval
        self._written = time.monotonic()
        self._state = ""

    def start(self, description: str) -> None:
        """Write what is trained."""
        self._write(f"training {description}")

    def update(self, at: Checkpoint, fraction: float | None) -> None:
        """Remember the state and write it when a line is due."""
        self._state = f"{_state(at)}, {at.seconds:.1f} s"
        if time.monotonic() - self._written >= self._interval:
            done = "" if fraction is None else f"{_clip(fraction):4.0%}, "
            self._write(f"{done}{self._state}")

    def finish(self, status: str) -> None:
        """Write how training ended and where it stood last."""
        self._write(_ending(status, self._state))

    def _write(self, text: str) -> None:
        sys.stderr.write(f"larank: {printable(text)}\n")
        sys.stderr.flush()
        self._written = time.monotonic()


class BarProgress(Progress):
    """A live bar with the gap beside it; it pulses while the fraction is unknown and never moves back.

    Attributes
    ----------
    fraction : float
        The furthest the bar has been, between 0 and 1.
    """

    def __init__(self, console: Console) -> None:
        """Draw on `console`."""
        self._bar = RichProgress(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[state]}", markup=False, table_column=Column(no_wrap=True)),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            expand=True,
            redirect_stdout=False,
        )
        self._task = self._bar.add_task("", total=None, state="")
        self.fraction = 0.0
        self._state = ""

    def start(self, description: str) -> None:
        """Write what is trained and show the bar below."""
        self._bar.console.print(Text(printable(f"training {description}")))
        self._bar.start()

    def update(self, at: Checkpoint, fraction: float | None) -> None:
        """Move the bar; it is redrawn ten times a second, however often this is called."""
        state = _state(at)
        self._state = f"{state}, {at.seconds:.1f} s"
        if fraction is not None:
            self.fraction = max(self.fraction, _clip(fraction))
        total = None if fraction is None else 1.0
        self._bar.update(self._task, total=total, completed=self.fraction, state=state)

    def finish(self, status: str) -> None:
        """Replace the bar by a line that says how training ended."""
        self.close()
        self._bar.console.print(Text(printable(_ending(status, self._state))))

    def close(self) -> None:
        """Take the bar off the screen."""
        self._bar.stop()


def progress_for(verbose: int) -> Progress:
    """Choose who listens.

    Parameters
    ----------
    verbose : int
        0 is silent; 1 shows a live bar if standard error is a terminal, otherwise a line every few seconds;
        2 and above write a line for every update.
    """
    if verbose < 0:
        raise ValueError(f"verbose must be 0 (silent), 1 or 2, got {verbose}")
    if verbose == 0:
        return Progress()
    if verbose > 1:
        return LineProgress(interval=0.0)
    console = Console(stderr=True)
    # Not console.is_terminal alone: FORCE_COLOR makes that true in a log file, where a bar is a mess.
    live = sys.stderr.isatty() and not console.is_dumb_terminal
    return BarProgress(console) if live else LineProgress()


def _state(at: Checkpoint) -> str:
    """One short line; a terminal of 80 columns must still have room for the bar."""
    if math.isnan(at.primal) and at.online_error is not None:
        return f"{at.iterations:.1f} passes, online error {at.online_error:.2%}"
    if math.isnan(at.primal):
        return f"{at.iterations:.1f} passes, no objective yet"
    relative = f"relative gap {at.gap / at.primal:.1e}" if at.primal > 0 else f"gap {at.gap:.1e}"
    state = f"{at.iterations:.1f} passes, {relative}"
    if at.rounds is not None:
        return f"{at.rounds} rounds, {state}, {(at.bytes_sent or 0) / 1e6:.1f} MB sent"
    return state if math.isnan(at.violation) else f"{state}, violation {at.violation:.1e}"


def _ending(status: str, state: str) -> str:
    ended = status.replace("_", " ")
    return f"{ended} after {state}" if state else ended


def _clip(fraction: float) -> float:
    """Into [0, 1]; a fraction that is not a number counts as nothing done."""
    return min(max(fraction, 0.0), 1.0) if fraction == fraction else 0.0
