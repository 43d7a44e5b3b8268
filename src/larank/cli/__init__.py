"""The command line: `larank train`, `predict`, `eval`, `info`, `tag`, `parse`, `label-concepts` and `demo`.

Results go to standard output; progress, warnings and errors to standard error. Exit status: 0 done, 1 the
work failed (one line says why), 2 wrong usage, 130 interrupted by Ctrl-C or SIGTERM. What a command needs is imported
when it is called.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

__all__ = ["app", "main"]

_COMMANDS = {
    "train": "Train a classifier, linear or with a kernel, and write it to a file.",
    "predict": "Predict the class of every example, one label per line.",
    "eval": "Measure the error of a model on labelled examples.",
    "info": "Show what is in a model file.",
    "tag": "Label the tokens of sequences: chunks, names, parts of speech.",
    "parse": "Find the meanings of sentences, learned from meanings they may have.",
    "label-concepts": "Find the concepts that words stand for, by what is known of the world.",
    "demo": "Train LaRank in one pass on UCI LETTER, beside its paper and scikit-learn's SVC.",
}


class _Commands(TyperGroup):
    """Commands that are imported when they are called, each from the module of its name without hyphens."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        found = import_module(f"larank.cli.{name}".replace("-", "")).app
        return name, typer.main.get_command(found if isinstance(found, typer.Typer) else found(rest)), rest

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        with _escaped_messages():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _escaped_messages(ctx):
            return super().invoke(ctx)


@contextmanager
def _escaped_messages(ctx: Any = None) -> Iterator[None]:
    """Escape the message of a usage error, which may name files, labels and whatever else was given.

    An error that comes before a command has a context gets this one, so that it is shown with the usage.
    """
    try:
        yield
    except Exception as caught:
        error: Any = caught
        if hasattr(error, "format_message"):
            is_help = error.message.startswith("Usage: ")  # of a command without arguments
            error.message = _printable(error.message, kept="\n" if is_help else "")
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx
        raise


def _printable(text: str, kept: str = "") -> str:
    from larank.training.progress import printable

    return printable(text, kept)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _help in _COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def main() -> None:
    """Run the `larank` command."""
    try:
        app(prog_name="larank")
    except Exception:  # as --debug has it
        sys.stderr.write(_printable(traceback.format_exc(), kept="\n"))
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"larank {metadata.version('larank')}")
        raise typer.Exit


@app.callback()
def larank(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Large-margin learning: train multiclass SVMs and know how far from optimal they are.

    \b
    A first look, on a data set that comes with the package:
      larank demo

    \b
    With your own data:
      larank train letter.svm letter.larank -C 1 --test letter.test.svm
      larank eval letter.larank letter.test.svm
      larank predict letter.larank new.svm labels.txt

    \b
    Sequences, from text in columns:
      larank tag train train.txt chunks.larank --test test.txt

    \b
    Sentences and the meanings they may have:
      larank parse train train.txt child.larank --test test.txt

    \b
    Sentences, and a table of what is known of what they speak of:
      larank label-concepts train house.csv train.txt house.larank --test test.txt

    Exit status: 0 done, 1 the work failed (one line says why), 2 wrong usage, 130 interrupted by Ctrl-C or SIGTERM.
    """
