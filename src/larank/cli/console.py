"""What all commands share: how failures are said, checks of files before the work, tables on a terminal."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from larank.data import models
from larank.data.arrayfile import OlderFileError
from larank.data.files import atomic_write, naming
from larank.report import Row, format_label, format_value, numeric_columns
from larank.training.progress import printable

Model = TypeVar("Model")

# ---- Options ----


_DATA_HELP = (
    "Examples: a table (.csv .tsv .parquet .arrow .feather), svmlight (.svm), or .npz with X and y; text may be "
    "compressed (.gz .bz2 .xz)."
)

DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=_DATA_HELP, show_default=False)]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by `larank train`.")]
NewModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Where to write the model.")]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="The indices of svmlight files count from zero.")]
Certify = Annotated[
    bool | None,
    typer.Option(
        "--certify/--no-certify",
        help="Compute the objectives of the final model on all examples, or on none; by default on all, or on a sample "
        "if the algorithm can take one.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="If something fails, show the whole traceback.")]


# ---- What can go wrong, and how it is said ----

_OUTPUT = "standard output"  # as errors name it
_INTERRUPTED = 128 + signal.SIGINT  # as shells have it


@contextmanager
def work(debug: bool) -> Iterator[None]:
    """Turn whatever fails inside into one line on standard error and exit status 1, and an interrupt into 130."""
    with warnings.catch_warnings(), _sigterm_as_ctrl_c():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_: say(f"warning: {_one_line(message)}")
        try:
            yield
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except Exception as error:
            if debug:
                raise
            say(f"error: {_explain(error)}")
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            if debug:
                raise
            say("interrupted")
            raise typer.Exit(_INTERRUPTED) from None


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does: training ends with a model that is saved, and files are left as they were."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _explain(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return _one_line(f"not enough memory: {error}".removesuffix(": "))
    if isinstance(error, OSError) and error.strerror:
        return _one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    if isinstance(error, ValueError | OSError) and str(error):
        return _one_line(error)
    return _one_line(f"{type(error).__name__}: {error} (--debug shows where)")


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def say(text: str) -> None:
    """Write a line to standard error."""
    typer.echo(f"larank: {printable(text)}", err=True)


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path | None]) -> None:
    """Find out before the work, not after it, that a result cannot be written or would destroy a file."""
    taken = [path.resolve() for path in inputs if path is not None]
    for path in outputs:
        if path is None:
            continue
        if path.resolve() in taken:
            raise typer.BadParameter(f"{path} is named twice; it would be overwritten")
        taken.append(path.resolve())
        folder = path.resolve().parent
        if not folder.is_dir():
            raise ValueError(f"cannot write {path}: there is no folder {folder}")
        if path.exists() and not path.is_file():
            raise ValueError(f"cannot write {path}: it is not a regular file")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"cannot write {path}: no permission to write in {folder}")


def check_replaceable(model_file: Path) -> None:
    """Refuse to replace anything but a model (or an empty file): the arguments may be the wrong way round."""
    if not model_file.exists() or model_file.stat().st_size == 0:
        return
    try:
        models.describe(model_file)
    except OlderFileError:
        return
    except models.ModelFileError:
        raise ValueError(f"{model_file} exists and is not a larank model; remove it first") from None


def say_if_stopped_early(estimator: Any, model_file: Path) -> None:
    """Say why training ended before it was done, and what was reached."""
    result = estimator.result_
    if result.status not in ("converged", "completed"):
        reached = f", duality gap {format_value(result.gap)} ({result.relative_gap:.1e} relative)"
        reason = result.status.replace("_", " ")
        holds = f"{model_file} holds the model reached by then{reached if result.has_objective else ''}"
        say(f"stopped early ({reason}); {holds}")


def exit_if_interrupted(estimator: Any) -> None:
    """Say by the exit status that the model is not what it would have been."""
    if estimator.result_.status == "interrupted":
        raise typer.Exit(_INTERRUPTED)


# ---- Tables ----

_NO_WIDTH = 1_000_000  # characters, more than any line has


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def console() -> Console:
    """Make one for standard output as it is now. Without a terminal it has no width, so that nothing is cut."""
    return Console(highlight=False, width=None if is_terminal() else _NO_WIDTH)


def print_line(text: str = "") -> None:
    """Write a line to standard output, however long it is."""
    with naming(_OUTPUT):
        console().print(Text(printable(text)), soft_wrap=True)


def print_rows(rows: Sequence[Row], title: str | None = None) -> None:
    """Write a table to standard output."""
    numeric = numeric_columns(rows)
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")
    for name in rows[0]:
        table.add_column(Text(printable(name)), justify="right" if name in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(format_value(row.get(name)))) for name in rows[0]))
    with naming(_OUTPUT):
        console().print(table)


def print_values(values: Mapping[str, object]) -> None:
    """Write names and values to standard output."""
    width = max(len(printable(name)) for name in values)
    for name, value in values.items():
        print_line(f"{printable(name):{width}}  {format_value(value)}")


def short(values: Sequence[Any], shown: int = 10) -> str:
    """List labels and the like; of many, the first ones."""
    if any(isinstance(value, Mapping | list | tuple) for value in values):
        return f"{len(values)} entries"
    text = ", ".join(map(format_label, values[:shown]))
    return text if len(values) <= shown else f"{text}, ... ({len(values)} in all)"


def write_text(output: Path | None, chunks: Iterable[str]) -> None:
    """Write to a file, which is there when all of it is, or to standard output: exactly, except to a terminal."""
    if output is None:
        for chunk in chunks:
            # Not typer.echo, which removes escape sequences where it does not write to a terminal.
            with naming(_OUTPUT):
                sys.stdout.write(printable(chunk, kept="\n\t") if is_terminal() else chunk)
                sys.stdout.flush()
        return
    with atomic_write(output) as file:
        for chunk in chunks:
            file.write(chunk.encode())


def counted(title: str, count: int, top: int) -> str:
    """Make a title that tells how many rows of how many are shown."""
    return title if count <= top else f"{title} ({top} of {count})"


def load_model(path: Path, kind: type[Model], needs: str) -> Model:
    """The model in a file, which must be of a kind; `needs` says in words who needs what."""
    model = models.load(path)
    if not isinstance(model, kind):
        raise ValueError(f"{path} holds a {type(model).__name__}; {needs}")
    return model
