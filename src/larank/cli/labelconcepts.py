"""`larank label-concepts train`, `apply` and `eval`: the concepts of words, by a table of what is known and a story."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from larank.ambiguous.concepts import ConceptLabeler
from larank.ambiguous.stories import StorySentence, read_story, story_text
from larank.ambiguous.universe import Universe, UniverseError
from larank.ambiguous.universetable import UniverseTable, read_table
from larank.cli.console import (
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
    say_if_stopped_early,
    work,
    write_text,
)
from larank.cli.options import Given, with_options_of
from larank.data import models

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_TABLE_HELP = "CSV with the columns concept, kind and words, and one for each relation: what is known at the beginning."
_STORY_HELP = (
    "Text in blocks, an empty line between them: a sentence, then its concepts; facts such as location(john) = kitchen "
    "before it; # begins a comment."
)

TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLE_HELP, show_default=False)]
StoryFile = Annotated[Path, typer.Argument(metavar="STORY", help=_STORY_HELP, show_default=False)]
LabelerFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by `larank label-concepts train`.")
]


@app.callback()
def larank_label_concepts() -> None:
    """Find the concept that each word of a sentence stands for, by what is known of the world.

    TABLE has what is known at the beginning: a row for each concept, a column for each relation. STORY has sentences,
    and between them the facts that change. Every story begins with the table.

    \b
    Examples:
      larank label-concepts train house.csv train.txt house.larank --test test.txt
      larank label-concepts eval house.larank house.csv test.txt
      larank label-concepts apply house.larank house.csv new.txt --explain
    """


def train(
    table_file: TableFile,
    story_file: StoryFile,
    model_file: NewModelFile,
    given: Given,
    seed: Seed = 0,
    test_file: Annotated[
        Path | None,
        typer.Option("--test", metavar="STORY", help="Measure the error on this story, with the concept of each word."),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a labeler on a story with the concepts of its words, and write it to a model file.

    The column words of TABLE adds a sentence of one word for each word and concept.

    \b
    Examples:
      larank label-concepts train house.csv train.txt house.larank --test test.txt
      larank label-concepts train house.csv train.txt house.larank --relations location --max-iter 20
    """
    with work(debug):
        check_outputs([model_file], [table_file, story_file, test_file])
        check_replaceable(model_file)
        labeler = given.estimator(random_state=seed, verbose=0 if quiet else 1)
        table = read_table(table_file)
        test = None if test_file is None else _story(test_file, table.universe, needs_concepts=True)
        are_bags = labeler.supervision == "bags"
        story = _story(story_file, table.universe, needs_concepts=True, are_bags=are_bags)
        labeler.fit(*_columns([*story, *_named(table)]))
        models.save(labeler, model_file)
        say_if_stopped_early(labeler, model_file)
        if not quiet:
            _print_figures(labeler, test)
            print_line(f"model written to {model_file}")
        exit_if_interrupted(labeler)


app.command()(with_options_of(ConceptLabeler, train))


@app.command()
def apply(
    model_file: LabelerFile,
    table_file: TableFile,
    story_file: StoryFile,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; standard output if left away.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say, as comments, how each sentence got its concepts.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Write a story with the concept of each word, as it can be read again.

    Concepts that STORY may have are not used.

    \b
    Examples:
      larank label-concepts apply house.larank house.csv new.txt
      larank label-concepts apply house.larank house.csv new.txt --output labelled.txt --explain
    """
    with work(debug):
        if output is not None:
            check_outputs([output], [model_file, table_file, story_file])
        labeler = _load(model_file)
        universe = read_table(table_file).universe
        story = _story(story_file, universe, needs_concepts=False, are_bags=True)
        with _fitting(model_file, table_file):
            labelled, comments = _labelled(labeler, story, explain)
        write_text(output, story_text(labelled, universe, comments))


@app.command("eval")
def evaluate(
    model_file: LabelerFile,
    table_file: TableFile,
    story_file: StoryFile,
    top: Annotated[int, typer.Option(min=0, help="Show so many sentences with a wrong concept.")] = 5,
    debug: Debug = False,
) -> None:
    """Measure a labeler on a story with the concept of each word: sentences and words that are wrong.

    \b
    Example:
      larank label-concepts eval house.larank house.csv test.txt
    """
    with work(debug):
        labeler, universe = _load(model_file), read_table(table_file).universe
        story = _story(story_file, universe, needs_concepts=True)
        with _fitting(model_file, table_file):
            found, _ = _labelled(labeler, story, explain=False)
        print_values(_errors(story, found))
        wrong = [
            {"sentence": " ".join(one.words), "concepts": _joined(one), "found": _joined(other)}
            for one, other in zip(story, found, strict=True)
            if one.concepts != other.concepts
        ]
        if wrong and top:
            print_rows(wrong[:top], counted("Wrong", len(wrong), top))


# ---- Files ----


def _story(path: Path, universe: Universe, *, needs_concepts: bool, are_bags: bool = False) -> list[StorySentence]:
    sentences = read_story(path, universe, needs_concepts=needs_concepts, are_bags=are_bags)
    if not sentences:
        raise ValueError(f"{path} holds no sentences")
    return sentences


def _named(table: UniverseTable) -> Iterator[StorySentence]:
    """A sentence for each word of the table, and each concept it may stand for."""
    for word, concepts in table.words.items():
        for concept in concepts:
            yield StorySentence((word,), (concept,), table.universe)


def _load(model_file: Path) -> ConceptLabeler:
    return load_model(model_file, ConceptLabeler, "`larank label-concepts` needs one that labels words")


@contextmanager
def _fitting(model_file: Path, table_file: Path) -> Iterator[None]:
    """What is wrong with the universes of a table names both files."""
    try:
        yield
    except (UniverseError, ValueError) as error:
        raise ValueError(f"{table_file} does not fit {model_file}: {error}") from None


# ---- Sentences ----


def _columns(
    story: Sequence[StorySentence],
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], list[Universe]]:
    """Sentences, concepts and universes, as a labeler takes them."""
    return (
        [sentence.words for sentence in story],
        [sentence.concepts or () for sentence in story],
        [sentence.universe for sentence in story],
    )


def _labelled(
    labeler: ConceptLabeler, story: Sequence[StorySentence], explain: bool
) -> tuple[list[StorySentence], list[list[str]] | None]:
    """The story with the concepts found and, if asked for, how."""
    if explain:
        found = [labeler.explain(sentence.words, sentence.universe) for sentence in story]
        concepts, comments = [each.concepts for each in found], [str(each).splitlines() for each in found]
    else:
        words, _, universes = _columns(story)
        concepts, comments = [tuple(names) for names in labeler.predict(words, universes)], None
    return [replace(sentence, concepts=names) for sentence, names in zip(story, concepts, strict=True)], comments


def _joined(sentence: StorySentence) -> str:
    return " ".join(sentence.concepts or ())


def _errors(story: Sequence[StorySentence], found: Sequence[StorySentence]) -> dict[str, object]:
    pairs = [(one.concepts or (), other.concepts or ()) for one, other in zip(story, found, strict=True)]
    n_words = sum(len(right) for right, _ in pairs)
    wrong_words = sum(name != other for pair in pairs for name, other in zip(*pair, strict=True))
    return {
        "test sentences": len(pairs),
        "test sentence error": f"{sum(right != got for right, got in pairs) / len(pairs):.2%}",
        "test word error": f"{wrong_words / n_words:.2%}",
    }


def _print_figures(labeler: ConceptLabeler, test: Sequence[StorySentence] | None) -> None:
    result = labeler.result_
    print_values(
        {
            **({} if test is None else _errors(test, _labelled(labeler, test, explain=False)[0])),
            "words": len(labeler.words_),
            "concepts": len(labeler.concepts_) - 1,  # one is "-"
            "relations": len(labeler.relations_),
            "passes": f"{result.iterations:g}",
            "seconds": f"{result.seconds:.2f}",
        }
    )
