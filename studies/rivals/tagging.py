"""`python -m studies tagging`: how good tags are, and what they cost, beside CRFsuite's L-BFGS.

CRFsuite gets the features of larank's default templates, and in another run the usual ones of its users: the word in
lower case, its ends, its capitals and digits, its part of speech where there is one, and the same of its neighbours.
Its features are made before the clock starts, larank's within the time that counts. Seconds are CPU seconds.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from larank import SequenceTagger
from larank.sequence.entities import entity_report
from larank.sequence.features import TemplateEncoder, encoder_for
from studies.datasets import Dataset, load_sequences
from studies.rivals.libraries import TAGGERS, usable
from studies.study import Findings, Say, Scope, Study
from studies.tables import column, of_rows

DATASETS = ("conll2000", "ud_ewt")
ITERATIONS = 100
"""Of L-BFGS."""
SEEDS = 3
QUICK_SENTENCES = 300
OURS: Mapping[str, Mapping[str, Any]] = {
    "larank": {},
    "larank, 3 passes": {"max_iter": 3},
    "larank, greedy": {"inference": "greedy", "order": 2},
    "larank, greedy, 3 passes": {"inference": "greedy", "order": 2, "max_iter": 3},
}
NOTE = (
    "conll2000: F1 of chunks from words and parts of speech; ud_ewt: accuracy of parts of speech from words. larank "
    "was chosen on parts of the training sets and on the development part of ud_ewt: templates and passes are what was "
    f"chosen, everything else is the default. CRFsuite: L-BFGS, {ITERATIONS} iterations at most, else its defaults; "
    "same: the features of larank."
)
Features = list[list[list[str]]]


@dataclass(frozen=True)
class Row:
    """One tagger; the quality is F1 where labels are those of chunks, and otherwise the accuracy, in percent."""

    problem: str = column("problem")
    solver: str = column("solver")
    quality: float = column("F1 or accuracy %", ".2f")
    deviation: float | None = column("deviation", ".2f")  # over seeds
    seconds: float = column("CPU s", ".1f")


def run(scope: Scope, say: Say) -> Findings:
    rows: list[Row] = []
    has_rival = bool(usable(("crfsuite-lbfgs",), TAGGERS, say))
    for name in scope.present(DATASETS, DATASETS, say):
        data = load_sequences(name).first(QUICK_SENTENCES, QUICK_SENTENCES) if scope.quick else load_sequences(name)
        for solver, settings in OURS.items():
            rows.append(_ours(name, solver, settings, data, scope.seed_range(SEEDS)))
            say(_told(rows[-1]))
        for features, made in (("same", _same), ("usual", _usual_of)) if has_rival else ():
            rows.append(_crfsuite(name, f"CRFsuite, {features} features", made, data))
            say(_told(rows[-1]))
    return Findings(
        rows={"rows": rows},
        tables=[of_rows("Taggers with their default features, beside CRFsuite's L-BFGS", rows)],
        lines=[NOTE],
    )


def _told(row: Row) -> str:
    return f"{row.problem}, {row.solver}: {row.quality:.2f} %, {row.seconds:.1f} s"


def _quality(problem: str, data: Dataset, predicted: Sequence[Sequence[str]]) -> float:
    report = entity_report(data.y_test, predicted)
    return 100.0 * (report.f1 if problem == "conll2000" else report.accuracy)


def _ours(problem: str, solver: str, settings: Mapping[str, Any], data: Dataset, seeds: range) -> Row:
    qualities, seconds = [], []
    for seed in seeds:
        began = time.process_time()
        tagger = SequenceTagger(random_state=seed, n_jobs=1, **settings).fit(data.X_train, data.y_train)
        seconds.append(time.process_time() - began)
        qualities.append(_quality(problem, data, tagger.predict(data.X_test)))
    deviation = float(np.std(qualities)) if len(qualities) > 1 else None
    return Row(problem, solver, float(np.mean(qualities)), deviation, float(np.mean(seconds)))


def _crfsuite(problem: str, solver: str, made: Callable[[Dataset], tuple[Features, Features]], data: Dataset) -> Row:
    from pycrfsuite import Tagger, Trainer

    train, test = made(data)
    ctypes.CDLL(None).srand(0)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        began = time.process_time()
        trainer = Trainer("lbfgs", {"max_iterations": ITERATIONS}, verbose=False)
        for tokens, labels in zip(train, data.y_train, strict=True):
            trainer.append(tokens, labels)
        trainer.train(path)
        seconds = time.process_time() - began
        tagger = Tagger()
        tagger.open(path)
        predicted = [tagger.tag(tokens) for tokens in test]
    return Row(problem, solver, _quality(problem, data, predicted), None, seconds)


def _same(data: Dataset) -> tuple[Features, Features]:
    """The features of larank's default templates, by their numbers."""
    encoder = encoder_for(data.X_train)
    assert isinstance(encoder, TemplateEncoder)
    return _numbered(encoder.learn(data.X_train)), _numbered(encoder.encode(data.X_test))


def _numbered(sequences: Any) -> Features:
    names = list(map(str, sequences.indices.tolist()))
    starts, tokens = sequences.starts.tolist(), sequences.indptr.tolist()
    rows = [names[a:b] for a, b in pairwise(tokens)]
    return [rows[a:b] for a, b in pairwise(starts)]


def _usual_of(data: Dataset) -> tuple[Features, Features]:
    train, test = ([_usual(sentence) for sentence in part] for part in (data.X_train, data.X_test))
    return train, test


def _usual(sentence: Sequence[Any]) -> list[list[str]]:
    """What the tutorials of python-crfsuite and sklearn-crfsuite make of a sentence."""
    tokens = [token if isinstance(token, tuple) else (token,) for token in sentence]
    found = []
    for t, (word, *_) in enumerate(tokens):
        made = ["bias", f"end3={word[-3:]}", f"end2={word[-2:]}", f"digit={word.isdigit()}"]
        made += [] if t else ["first"]
        made += [] if t + 1 < len(tokens) else ["last"]
        for offset in (-1, 0, 1):
            if 0 <= t + offset < len(tokens):
                neighbour, *tags = tokens[t + offset]
                made += [f"{offset}lower={neighbour.lower()}", f"{offset}title={neighbour.istitle()}"]
                made += [f"{offset}upper={neighbour.isupper()}"]
                made += [f"{offset}{part}" for tag in tags for part in (f"tag={tag}", f"tag2={tag[:2]}")]
        found.append(made)
    return found


_TITLE = "Taggers as they come, against CRFsuite's L-BFGS"
STUDY = Study("tagging", _TITLE, run, DATASETS, has_seeds=True, libraries=("python-crfsuite",))
