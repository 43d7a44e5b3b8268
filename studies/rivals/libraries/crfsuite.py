"""python-crfsuite: a first-order chain, one thread.

Features are lists of strings, one list per token, made with f-strings and handed over sentence by sentence: of the ways
tried, the fastest. (The loop over templates of CRFsuite's own scripts took four times as long to extract, dictionaries
a third longer to hand over.) `Trainer.append` turns strings into CRFsuite's numbers; `train` writes the model file.

CRFsuite shuffles with the C library's `rand()`, which nothing but a call of `srand` seeds; so it is called.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from studies.rivals.libraries.solver import Solver, TaggerFit, Tags
from studies.rivals.text import read
from studies.trial import Stopwatch

SEED = 0
LBFGS_ITERATIONS = 50


def features(sentence: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The 19 templates of larank.sequence.features.CHUNKING, with marks beyond the ends of the sentence."""
    words = ["<s-2>", "<s-1>", *(word for word, _ in sentence), "</s+1>", "</s+2>"]
    tags = ["<s-2>", "<s-1>", *(tag for _, tag in sentence), "</s+1>", "</s+2>"]
    tokens = []
    for t in range(len(sentence)):
        w0, w1, w2, w3, w4 = words[t : t + 5]
        p0, p1, p2, p3, p4 = tags[t : t + 5]
        tokens.append(
            [
                *(f"word[-2]={w0}", f"word[-1]={w1}", f"word[0]={w2}", f"word[1]={w3}", f"word[2]={w4}"),
                *(f"word[-1]|word[0]={w1}|{w2}", f"word[0]|word[1]={w2}|{w3}"),
                *(f"pos[-2]={p0}", f"pos[-1]={p1}", f"pos[0]={p2}", f"pos[1]={p3}", f"pos[2]={p4}"),
                *(f"pos[-2]|pos[-1]={p0}|{p1}", f"pos[-1]|pos[0]={p1}|{p2}"),
                *(f"pos[0]|pos[1]={p2}|{p3}", f"pos[1]|pos[2]={p3}|{p4}"),
                f"pos[-2]|pos[-1]|pos[0]={p0}|{p1}|{p2}",
                f"pos[-1]|pos[0]|pos[1]={p1}|{p2}|{p3}",
                f"pos[0]|pos[1]|pos[2]={p2}|{p3}|{p4}",
            ]
        )
    return tokens


@dataclass(frozen=True)
class Crfsuite(Solver):
    """`algorithm` and `parameters` are CRFsuite's."""

    requires: str = "pycrfsuite"
    algorithm: str = "lbfgs"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **settings: Any) -> Crfsuite:
        return replace(self, parameters={**self.parameters, **settings})

    def fit(self, path: Path) -> TaggerFit:
        from pycrfsuite import Trainer

        ctypes.CDLL(None).srand(SEED)
        reading, training = Stopwatch(), Stopwatch()
        extraction = handing = 0.0
        with tempfile.NamedTemporaryFile(suffix=".crfsuite") as model:
            with Stopwatch() as watch:
                with reading:
                    sentences, labels = read(path)
                trainer = Trainer(self.algorithm, dict(self.parameters), verbose=False)
                for sentence, tags in zip(sentences, labels, strict=True):
                    began = time.perf_counter()
                    tokens = features(sentence)
                    extracted = time.perf_counter()
                    trainer.append(tokens, tags)
                    extraction += extracted - began
                    handing += time.perf_counter() - extracted
                with training:
                    trainer.train(model.name)
            tag_prepared = _tagger(model.name)
        parts = {"read": reading.wall, "extract": extraction, "hand over": handing, "train": training.wall}
        extra = {"breakdown": parts}
        return TaggerFit(watch, lambda file: tag_prepared(_prepared(file)), _prepared, tag_prepared, extra=extra)


def _prepared(file: Path) -> list[list[list[str]]]:
    return [features(sentence) for sentence in read(file)[0]]


def _tagger(path: str) -> Callable[[Any], Tags]:
    from pycrfsuite import Tagger

    tagger = Tagger()
    tagger.open(path)  # reads the whole file; open_inmemory would go on using bytes it does not keep alive
    return lambda prepared: [tagger.tag(tokens) for tokens in prepared]


TAGGERS = (
    Crfsuite("crfsuite-pa", algorithm="passive-aggressive", parameters={"max_iterations": 10}),
    Crfsuite("crfsuite-ap", algorithm="averaged-perceptron", parameters={"max_iterations": 10}),
    Crfsuite("crfsuite-lbfgs", parameters={"max_iterations": LBFGS_ITERATIONS}),
)
