"""The command line: `larank train`, `predict`, `eval`, `info`, `tag` and `demo`.

Results go to standard output; progress, warnings and errors to standard error. Exit status: 0 done, 1 the
work failed (one line says why), 2 wrong usage. What a command needs is imported when it is called.
"""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from larank.cli import demo, info, predict, tag, train
from larank.cli.options import Commands

__all__ = ["app", "main"]

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(train.train)
app.command()(predict.predict)
app.command("eval")(predict.evaluate)
app.command()(info.info)
app.add_typer(tag.app, name="tag")
app.command()(demo.demo)


def main() -> None:
    """Run the `larank` command."""
    app(prog_name="larank")


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

    Exit status: 0 done, 1 the work failed (one line says why), 2 wrong usage.
    """
