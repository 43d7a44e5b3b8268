"""Command lines with damaged arguments and files: a status of 0, 1 or 2, one line where it is 1, and no traceback."""

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from tools.hostile import columns, svmlight, tables, texts
from tools.hostile.campaign import Attack, Case, made_apart
from tools.hostile.datafiles import due
from tools.hostile.mutations import NUMBERS, damaged, packed

FILES = {
    "data.svm": b"1 1:0.5 3:2\n2 2:1 # a comment\n1 1:.25 2:7 3:1\n2 3:1\n" * 3,
    "data.csv": b"1,2,a\n3,4.5,b\n0,0,a\n7,1,b\n",
    "data.txt": columns.TEXTS[0] * 3,
    "table.csv": texts.TABLE,
    "people.csv": b'id;name;age;sex\n1;"Ann ""A""; Bo";31,5;f\n2;Cy;;m\n3;Di;7,25;f\n4;Ed;NA;m\n' * 2,
    "story.txt": texts.STORY.replace(b"he leaves\n", b"he leaves\njohn -\n"),
    "meanings.txt": texts.MEANINGS,
}
MODELS = {
    "a.larank": "train data.svm a.larank",
    "k.larank": "train data.csv k.larank --algorithm larank",
    "t.larank": "tag train data.txt t.larank",
    "p.larank": "parse train meanings.txt p.larank",
    "d.larank": "train people.csv d.larank --label sex",
    "c.larank": "label-concepts train table.csv story.txt c.larank --hidden-size 8 --embedding-size 4",
}
COMMANDS = (
    *(line.replace(".larank", ".new") for line in MODELS.values()),
    "predict a.larank data.svm out.txt",
    "predict k.larank data.csv --scores",
    "eval a.larank data.svm --top 3",
    "eval k.larank data.csv",
    "predict d.larank people.csv out.csv --id name --scores",
    "predict d.larank people.csv --csv",
    "eval d.larank people.csv --label sex",
    "info a.larank",
    "info d.larank",
    "tag apply t.larank data.txt --output out.txt",
    "tag eval t.larank data.txt --top 2",
    "parse apply p.larank meanings.txt --explain",
    "parse eval p.larank meanings.txt",
    "label-concepts apply c.larank table.csv story.txt --explain",
    "label-concepts eval c.larank table.csv story.txt",
)
_OPTIONS = """
--algorithm --kernel --gamma --degree --coef0 -C --tol --stop --max-iter --class-weight --formulation
--no-intercept --shrinking --intercept-scaling --memory-limit --n-jobs --seed --features --zero-based --test --loss
--alpha --selection --tau --max-support --schedule --operations --certify --no-certify --precision --quiet --help
--version --scores --top --output --explain --inference
--order --solver --constraints --history --templates --columns --label --separator --comment --window --strategy
--update --relations --supervision --embedding-size --hidden-size --learning-rate --margin --no-shuffle --time-limit
--nonsense --raw --column --scale --text --delimiter --header --no-header --encoding --id --csv --proba - --
"""
OPTIONS = _OPTIONS.split()
_VALUES = """
sdm larank mcsvm lasvm ambiguous huller passive-aggressive perceptron primal sgd tracking linear rbf poly sigmoid
laplacian chi2 intersection precomputed scale auto gap violation balanced crammer-singer weston-watkins
one-vs-rest exact greedy BIO BILOU words chunking tab blanks word,pos left-right random bags location hinge log_loss
age=text name=drop sex=number robust tfidf hash ; tab cp1252 utf-16 latin-1
train predict eval info tag parse label-concepts apply missing.svm . .. /dev/null folder/out.txt x.npz
"""
VALUES = _VALUES.split()
SCRIPT = """
import contextlib, io, sys
from larank.cli import main

sys.argv = ["larank", *{!r}]
said, out = io.StringIO(), io.StringIO()
with contextlib.redirect_stderr(said), contextlib.redirect_stdout(out):
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code or 0
said = said.getvalue()
assert status in (0, 1, 2), (status, said)
assert "Traceback" not in said and "--debug shows where" not in said, said
if status == 1:
    errors = [line for line in said.splitlines() if not line.startswith(("larank: training", "larank: warning"))]
    # One error, and before it perhaps what was noted on the way.
    assert errors and errors[-1].startswith("larank: error: "), said
    assert all(line.startswith("larank: ") and not line.startswith("larank: error: ") for line in errors[:-1]), said
if status:
    raise SystemExit(status)
"""


def cases(random: Random) -> Iterator[Case]:
    words = [word.decode() for word in NUMBERS] + OPTIONS + VALUES + list(FILES) + list(MODELS)
    while True:
        arguments = random.choice(COMMANDS).split()
        if "train" in arguments:
            arguments += ["--time-limit", "0.2"]
        named = [name for name in (*FILES, *MODELS) if name in arguments]
        files = {name: FILES.get(name) or models()[name] for name in named}
        for _ in range(random.choice((0, 1, 1, 2, 4))):
            arguments = changed(random, arguments, words)
        hit = random.choice(named)
        if hit in FILES and random.randrange(2):
            files[hit] = packed(random, damaged(random, files[hit], svmlight.WORDS + tables.WORDS + texts.WORDS))
        memory = sum(due(content) for name, content in files.items() if name in FILES)
        yield Case(SCRIPT.format(arguments), files, memory)


def changed(random: Random, arguments: list[str], words: list[str]) -> list[str]:
    """Arguments with one more, less or other."""
    at = random.randrange(len(arguments) + 1)
    new = random.choice(("", "\0", "é" * 300, "--C=1", "-C-1", *words, *words, *words, *words))
    match random.randrange(5):
        case 0:
            return arguments[:at] + arguments[at + 1 :]
        case 1:
            return [*arguments[:at], new, *arguments[at + 1 :]]
        case 2:
            return [*arguments[:at], new, *arguments[at:]]
        case 3:
            return [*arguments, random.choice(OPTIONS), random.choice(words)]
        case _:
            return [*arguments[:at], *random.sample(arguments, min(1, len(arguments))), *arguments[at:]]


@cache
def models() -> dict[str, bytes]:
    """A model of each command that trains; their lengths, which differ from time to time, decide nothing."""
    return made_apart(_trained)


def _trained() -> dict[str, bytes]:
    from larank.cli import app

    back = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            for name, content in FILES.items():
                Path(name).write_bytes(content)
            for line in MODELS.values():
                app([*line.split(), "--quiet"], standalone_mode=False)
            return {name: Path(name).read_bytes() for name in MODELS}
        finally:
            os.chdir(back)


def is_documented(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (1, 2)


WARM_UP = """
import larank.cli, larank.cli.train, larank.cli.predict, larank.cli.eval, larank.cli.info, larank.cli.tag
import larank.cli.parse, larank.cli.labelconcepts
import larank
for name in larank.__all__:
    getattr(larank, name)
import numpy, polars
numpy.ones((50, 50)) @ numpy.ones((50, 50))
"""
ATTACK = Attack(cases, is_documented, warm_up=WARM_UP, megabytes=512, seconds=60)
