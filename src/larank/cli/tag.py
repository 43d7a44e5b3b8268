"""`larank tag train`, `apply` and `eval`: sequence labelling of files in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from larank.cli.checkpoints import CheckpointTo, Every, Resume, checkpoint_arguments, remove_checkpoint
from larank.cli.console import (
    Certify,
    Debug,
    NewModelFile,
    Quiet,
    Seed,
    check_outputs,
    check_replaceable,
    counted,
    exit_if_interrupted,
    load_model,
    print_line,
    print_rows,
    print_values,
    say,
    say_if_stopped_early,
    work,
    write_text,
)
from larank.cli.examples import check_fit_in_lines, check_labels
from larank.cli.options import Given, with_options_of
from larank.data import models
from larank.data.columns import ConllFile
from larank.data.files import opened
from larank.report import confusions
from larank.sequence.entities import entity_report, has_chunks
from larank.sequence.features import TEMPLATES
from larank.sequence.tagger import SequenceTagger
from larank.sequence.wronglabels import LabelsNotAllowedError, WrongLabels, named_by_line

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_BLOCK_TOKENS = 50_000


class Separator(StrEnum):
    """What stands between columns."""

    blanks = "blanks"
    tab = "tab"


class _FileLayout(NamedTuple):
    """How a file is written down."""

    label: int | None
    separator: Separator
    comment: str | None

    def open(self, path: Path, columns: Sequence[str] | None, label: int | None) -> ConllFile:
        """The file, with these columns and that of the labels."""
        return ConllFile(path, columns, label, "\t" if self.separator is Separator.tab else None, self.comment)

    @property
    def label_at(self) -> int:
        """Where the labels are, if there are any."""
        return -1 if self.label is None else self.label - 1


_FILE_HELP = "Text in columns: a token per line, an empty line after each sentence; may be compressed (.gz .bz2 .xz)."

ColumnFile = Annotated[Path, typer.Argument(metavar="FILE", help=_FILE_HELP, show_default=False)]
TaggerFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by `larank tag train`.")]
LabelColumn = Annotated[
    int | None, typer.Option("--label", min=1, help="The column of the labels, from 1.", show_default="the last")
]
SeparatorName = Annotated[
    Separator, typer.Option(help="Columns are separated by any number of blanks, or by one tab each.")
]
Comment = Annotated[str | None, typer.Option(metavar="TEXT", help="Skip lines that begin with this.")]


@app.callback()
def larank_tag() -> None:
    """Label the tokens of sequences: chunks, names, parts of speech.

    Files have a token per line, its columns separated by blanks or tabs, and an empty line after each sentence.

    \b
    Examples:
      larank tag train train.txt chunks.larank --test test.txt
      larank tag eval chunks.larank test.txt
      larank tag apply chunks.larank new.txt --output tagged.txt
    """


def train(
    data_file: ColumnFile,
    model_file: NewModelFile,
    given: Given,
    templates: Annotated[
        str | None,
        typer.Option(
            metavar=f"{'|'.join(TEMPLATES)}|FILE",
            help="Features of a token: a set that comes along, or a file with one template per line.",
            show_default="general",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...", help="Names of the columns, without the labels'.", show_default="word,pos,col2,..."
        ),
    ] = None,
    seed: Seed = 0,
    label: LabelColumn = None,
    separator: SeparatorName = Separator.blanks,
    comment: Comment = None,
    test_file: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Measure the errors on this file.")
    ] = None,
    calibration_file: Annotated[
        Path | None,
        typer.Option(
            "--calibrate", metavar="FILE", help="Learn on this file, which is not trained on, how sure labels are."
        ),
    ] = None,
    certify: Certify = None,
    checkpoint_file: CheckpointTo = None,
    every: Every = 30.0,
    resume: Resume = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a tagger on a file, and write it to a model file.

    The file is read block by block: it need not fit into memory. With --checkpoint a training that was killed goes on
    by the same command with --resume.

    \b
    Examples:
      larank tag train train.txt chunks.larank --test test.txt
      larank tag train train.txt chunks.larank --inference greedy --order 2 --constraints BIO
      larank tag train en.tsv pos.larank --label 2 --separator tab --columns word,penn --templates words
      larank tag train train.txt names.larank --constraints BIO --repair --calibrate dev.txt
      larank tag train train.txt chunks.larank --max-iter 20 --checkpoint chunks.checkpoint --resume
    """
    with work(debug):
        check_outputs([model_file, checkpoint_file], [data_file, test_file, calibration_file])
        check_replaceable(model_file)
        named = None if columns is None else tuple(name.strip() for name in columns.split(","))
        layout = _FileLayout(label, separator, comment)
        _count_columns(data_file, layout)
        file = layout.open(data_file, named, layout.label_at)
        tagger = given.estimator(
            templates=_templates(templates), columns=file.columns, random_state=seed, verbose=0 if quiet else 1
        )
        test = None if test_file is None else _labelled_file(test_file, file.columns, layout)
        held_out = None if calibration_file is None else _labelled_file(calibration_file, file.columns, layout)
        arguments = checkpoint_arguments(tagger, checkpoint_file, every, resume)
        if certify is not None:
            arguments["certify"] = certify
        with _lists_wrong_labels():
            tagger.fit(file, **arguments)
        if held_out is not None:
            tagger.calibrate(held_out)
        models.save(tagger, model_file)
        remove_checkpoint(tagger, checkpoint_file)
        say_if_stopped_early(tagger, model_file)
        figures = {} if test is None else _figures(*_compared(tagger, test))
        if not quiet:
            print_values({**figures, **tagger.result_.figures()})
            print_line(f"model written to {model_file}")
        exit_if_interrupted(tagger)


app.command()(with_options_of(SequenceTagger, train))


@app.command()
def apply(
    model_file: TaggerFile,
    data_file: ColumnFile,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; standard output if left away.")
    ] = None,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence",
            help="Add a column: the probability that the label is right; its margin if training had no --calibrate.",
        ),
    ] = False,
    label: LabelColumn = None,
    separator: SeparatorName = Separator.blanks,
    comment: Comment = None,
    debug: Debug = False,
) -> None:
    """Tag a file: its lines as they are, with the predicted label as a last column.

    FILE may have a column of labels; they are not used. It is read block by block.

    \b
    Examples:
      larank tag apply chunks.larank new.txt
      larank tag apply chunks.larank new.txt --confidence
      larank tag apply chunks.larank new.txt --output tagged.txt
    """
    with work(debug):
        if output is not None:
            check_outputs([output], [model_file, data_file])
        tagger, columns = _load(model_file)
        check_fit_in_lines(model_file, tagger.classes_, "train with labels of one line")
        data = _file(data_file, columns, _FileLayout(label, separator, comment))
        if data.label is not None:
            named = "the last column" if label is None else f"column {label}"
            say(f"{data_file} has one column more than the model takes; {named} is left aside as labels")
        write_text(output, _tagged(tagger, data, _with_confidence if confidence else _labels))


@app.command("eval")
def evaluate(
    model_file: TaggerFile,
    data_file: ColumnFile,
    top: Annotated[int, typer.Option(min=1, help="Show so many pairs of labels, the most confused first.")] = 10,
    label: LabelColumn = None,
    separator: SeparatorName = Separator.blanks,
    comment: Comment = None,
    debug: Debug = False,
) -> None:
    """Measure the errors of a tagger on a labelled file.

    Shows the accuracy; precision, recall and F1 of entities as conlleval counts them, if the labels are those of chunks
    (B-NP, I-NP, O); and the pairs of labels most often confused.

    \b
    Example:
      larank tag eval chunks.larank test.txt
    """
    with work(debug):
        tagger, columns = _load(model_file)
        true, predicted = _compared(tagger, _labelled_file(data_file, columns, _FileLayout(label, separator, comment)))
        print_values(_figures(true, predicted))
        if has_chunks(label for labels in true for label in labels):
            print_rows(entity_report(true, predicted).rows(), "Entities")
        pairs = confusions(
            *(np.array([name for labels in part for name in labels], dtype=object) for part in (true, predicted))
        )
        if pairs:
            print_rows(pairs[:top], counted("Most confused", len(pairs), top))


# ---- Options ----


def _templates(name: str | None) -> str | Sequence[str] | None:
    """The name of a set, or the lines of a file; empty ones and comments (#) are skipped."""
    if name is None or name in TEMPLATES:
        return name
    if not Path(name).is_file():
        raise ValueError(f"--templates {name}: there is no such file; sets that come along: {', '.join(TEMPLATES)}")
    lines = [line.strip() for line in Path(name).read_text(encoding="utf-8").splitlines()]
    return tuple(line for line in lines if line and not line.startswith("#"))


# ---- Models and files ----


@contextmanager
def _lists_wrong_labels() -> Iterator[None]:
    """Name all places where labels are not allowed, a line each, before the error that counts them."""
    try:
        yield
    except LabelsNotAllowedError as error:
        for place in error.places:
            say(place)
        count = len(error.places)
        raise ValueError(
            f"{count} labels are not allowed by --constraints, see above; --repair reads them as conlleval does"
        ) from error


def _load(model_file: Path) -> tuple[SequenceTagger, Sequence[str]]:
    """A tagger of text in columns, and the names of these."""
    model = load_model(model_file, SequenceTagger, "`larank tag` needs one that tags sequences")
    if model.columns_ is None:
        raise ValueError(f"{model_file} was trained on tokens that are not text; files in columns need one that was")
    return model, model.columns_


def _file(path: Path, columns: Sequence[str], layout: _FileLayout) -> ConllFile:
    """A file for a tagger: with its columns, and with labels if it has one column more."""
    found = _count_columns(path, layout)
    if found not in (len(columns), len(columns) + 1):
        raise ValueError(
            f"{path} has {found} columns; the model takes {len(columns)} ({', '.join(columns)}), and one of labels may "
            "be added"
        )
    has_labels = found > len(columns)
    if layout.label is not None and not has_labels:
        named = ", ".join(columns)
        raise ValueError(f"--label {layout.label}: {path} has no column beside those of the model ({named})")
    return layout.open(path, columns, layout.label_at if has_labels else None)


def _count_columns(path: Path, layout: _FileLayout) -> int:
    """Look at the first line, so that the file is read again later."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} is a pipe or a device; `larank tag` reads files more than once, so write it to one")
    found = len(layout.open(path, None, None).columns)
    if layout.label is not None and layout.label > found:
        raise ValueError(f"--label {layout.label}: {path} has {found} columns")
    return found


def _labelled_file(path: Path, columns: Sequence[str], layout: _FileLayout) -> ConllFile:
    file = _file(path, columns, layout)
    if file.label is None:
        raise ValueError(f"{path} has no labels, only the columns of the model ({', '.join(file.columns)})")
    return file


def _compared(tagger: SequenceTagger, file: ConllFile) -> tuple[list[list[str]], list[list[str]]]:
    """True and predicted labels, sentence by sentence."""
    true: list[list[str]] = []
    predicted: list[list[str]] = []
    wrong = WrongLabels(tagger.constraints)
    for block in file.blocks(_BLOCK_TOKENS):
        names = np.array(file.labels.words(), dtype=object)[block.labels].tolist()
        if tagger.repair:
            names = wrong.mend(block.starts, names, named_by_line(file, block))
        true += [names[start:end] for start, end in pairwise(block.starts.tolist())]
        predicted += [list(map(str, labels)) for labels in tagger.predict(block)]
    wrong.warn_of_repair()
    check_labels(
        Path(file.path), np.array([name for names in true for name in names], dtype=object), tagger.classes_, "token"
    )
    return true, predicted


def _labels(tagger: SequenceTagger, block: Any) -> Iterator[Sequence[str]]:
    """The columns that a token gets: its label."""
    return ((str(label),) for labels in tagger.predict(block) for label in labels)


def _with_confidence(tagger: SequenceTagger, block: Any) -> Iterator[Sequence[str]]:
    """The same, and how sure it is."""
    for token in (token for sequence in tagger.predict_confidence(block) for token in sequence):
        sure = token.margin if token.probability is None else token.probability
        yield str(token.label), f"{sure:.4f}"


def _tagged(
    tagger: SequenceTagger, file: ConllFile, columns_of: Callable[[SequenceTagger, Any], Iterator[Sequence[str]]]
) -> Iterator[str]:
    """The lines of the file, those of tokens with more columns, a block at a time."""
    with opened(file.path) as stream:
        number = 0
        for block in file.blocks(_BLOCK_TOKENS):
            lines = []
            for at, columns in zip(block.lines.tolist(), columns_of(tagger, block), strict=True):
                while number < at:
                    line = stream.readline().decode().rstrip("\r\n")
                    number += 1
                    if number < at:
                        lines.append(line)
                lines.append(_joint(file, line).join([line, *columns]))
            yield "".join(f"{line}\n" for line in lines)
        yield stream.read().decode()


def _joint(file: ConllFile, line: str) -> str:
    return "\t" if file.separator == "\t" or "\t" in line else " "


# ---- Figures ----


def _figures(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, object]:
    report = entity_report(true, predicted)
    figures: dict[str, object] = {
        "test sentences": len(true),
        "test tokens": report.tokens,
        "test accuracy": f"{report.accuracy:.2%}",
    }
    if has_chunks(label for labels in true for label in labels):
        figures["test F1"] = f"{report.f1:.2%}"
    return figures
