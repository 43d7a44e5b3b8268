"""`larank parse train`, `apply` and `eval`: meanings of the sentences in a text file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from larank.ambiguous.meanings import Meaning, ParseExample, read_examples
from larank.ambiguous.parser import SemanticParser
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

_FILE_HELP = "Text in blocks, an empty line between them: a sentence, then a meaning per line; # begins a comment."

BlockFile = Annotated[Path, typer.Argument(metavar="FILE", help=_FILE_HELP, show_default=False)]
ParserFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by `larank parse train`.")]


@app.callback()
def larank_parse() -> None:
    """Find the meanings of sentences, such as believe(mother, break(dog, box)).

    Files have a block per sentence, and an empty line between two: the sentence, then the meanings it may have, one per
    line. Which of them is right, and which word stands for what, need not be known.

    \b
    Examples:
      larank parse train train.txt child.larank --test test.txt
      larank parse eval child.larank test.txt
      larank parse apply child.larank new.txt --explain
    """


def train(
    data_file: BlockFile,
    model_file: NewModelFile,
    given: Given,
    seed: Seed = 0,
    test_file: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Measure the F1 on this file, of one meaning each.")
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a parser on sentences with the meanings they may have, and write it to a model file.

    \b
    Examples:
      larank parse train train.txt child.larank --test test.txt
      larank parse train train.txt child.larank --window 3 -C 1
    """
    with work(debug):
        check_outputs([model_file], [data_file, test_file])
        check_replaceable(model_file)
        parser = given.estimator(random_state=seed, verbose=0 if quiet else 1)
        test = None if test_file is None else _tested(test_file)
        parser.fit(_sentences(data_file, needs_candidates=True))
        models.save(parser, model_file)
        say_if_stopped_early(parser, model_file)
        if not quiet:
            figures = {} if test is None else _figures(parser, *test)
            result = parser.result_
            print_values(
                {
                    **figures,
                    "symbols": len(parser.symbols_),
                    "relations": len(parser.relations_),
                    "passes": f"{result.iterations:g}",
                    "seconds": f"{result.seconds:.2f}",
                }
            )
            print_line(f"model written to {model_file}")
        exit_if_interrupted(parser)


app.command()(with_options_of(SemanticParser, train))


@app.command()
def apply(
    model_file: ParserFile,
    data_file: BlockFile,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; standard output if left away.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say, as comments, how each sentence got its meaning.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Write each sentence of a file with its meaning, in blocks as they are read.

    Meanings that FILE may have are not used. A sentence without a valid meaning has none.

    \b
    Examples:
      larank parse apply child.larank new.txt
      larank parse apply child.larank new.txt --output parsed.txt --explain
    """
    with work(debug):
        if output is not None:
            check_outputs([output], [model_file, data_file])
        parser = _load(model_file)
        write_text(output, _blocks(parser, _sentences(data_file, needs_candidates=False), explain))


@app.command("eval")
def evaluate(
    model_file: ParserFile,
    data_file: BlockFile,
    top: Annotated[int, typer.Option(min=0, help="Show so many sentences whose meaning was not found.")] = 5,
    debug: Debug = False,
) -> None:
    """Measure a parser on sentences with one meaning each: precision, recall and F1 of whole meanings.

    \b
    Example:
      larank parse eval child.larank test.txt
    """
    with work(debug):
        parser = _load(model_file)
        words, right = _tested(data_file)
        print_values(_figures(parser, words, right))
        wrong = [
            {"sentence": " ".join(sentence), "meaning": str(meaning), "found": "none" if found is None else str(found)}
            for sentence, meaning, found in zip(words, right, parser.predict(words), strict=True)
            if found != meaning
        ]
        if wrong and top:
            print_rows(wrong[:top], counted("Not found", len(wrong), top))


def _sentences(path: Path, *, needs_candidates: bool) -> list[ParseExample]:
    examples = read_examples(path, needs_candidates=needs_candidates)
    if not examples:
        raise ValueError(f"{path} holds no sentences")
    return examples


def _tested(path: Path) -> tuple[list[tuple[str, ...]], list[Meaning]]:
    """Sentences and their meanings."""
    examples = _sentences(path, needs_candidates=True)
    for example in examples:
        if len(example.candidates) != 1:
            raise ValueError(
                f"{path}: to measure, every sentence must have one meaning, the right one; "
                f"{' '.join(example.words)!r} has {len(example.candidates)}"
            )
    return [example.words for example in examples], [example.candidates[0] for example in examples]


def _load(model_file: Path) -> SemanticParser:
    return load_model(model_file, SemanticParser, "`larank parse` needs one that parses sentences")


def _figures(parser: SemanticParser, words: Sequence[tuple[str, ...]], right: Sequence[Meaning]) -> dict[str, object]:
    scores = parser.evaluate(words, right)
    return {
        "test sentences": len(words),
        "test precision": f"{scores.precision:.2%}",
        "test recall": f"{scores.recall:.2%}",
        "test F1": f"{scores.f1:.2%}",
    }


def _blocks(parser: SemanticParser, examples: Sequence[ParseExample], explain: bool) -> Iterator[str]:
    for example in examples:
        lines = [" ".join(example.words)]
        explanation = parser.explain(example.words)
        if explain:
            lines += [f"# {line}" for line in str(explanation).splitlines()]
        lines.append("# no meaning found" if explanation.meaning is None else str(explanation.meaning))
        yield "\n".join([*lines, "", ""])
