"""`python -m studies concepts`: tables C.2 and C.3 of [thesis], words labelled by what is known of the world.

A part of the study is a function that returns a field of `ConceptFigures`; what was found is shown by
`concepttables.py`.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from studies.papers import concepttables as shown
from studies.papers.concepttables import BLIND, BOTH, KNOWING, MEMORY, METHODS, OF_BOTH, TAGGER, Method
from studies.papers.experiment import timed_fit
from studies.study import Say, Scope, Study

PARTS = ("simulation", "table", "neighbours", "weak", "curve", "speed")
SIZES, QUICK_SIZES = (50_000, 20_000), (1500, 300)
CURVE, QUICK_CURVE = (1000, 2000, 5000, 10_000, 20_000, 50_000), (200, 1500)
SEEDS, FIRST_SEED = 3, 100
WINDOW = 13
TAGGERS: dict[tuple[str, ...], dict[str, Any]] = {(): {"C": 0.01, "max_iter": 1}, BOTH: {"C": 0.03, "max_iter": 5}}
"""By what is known, the best of those tried: 50 000 triples of seed 1000 for training, 5000 of seed 2000 for test.

For x, C 0.001, 0.01, 0.1 and 1 with one pass, 0.01 with three, 0.03 and 0.1 with five; for x+u, C 0.0003, 0.001, 0.01
and 0.1 with one pass, 0.003, 0.01, 0.03, 0.1 and 0.3 with five.
"""
REPEATS = 3  # of predictions that are timed

_SEEDS_NOTE = (
    f"Data of seeds from {FIRST_SEED} on; the constants of the labeler and those of the tagger were chosen on data of "
    "seeds 1000 and 2000."
)
_TAGGER_NOTE = (
    "SVMstruct: ours is SequenceTagger with exact inference (Viterbi), order 1, on all training sentences; C "
    f"{TAGGERS[()]['C']:g} and {TAGGERS[()]['max_iter']} pass for x, C {TAGGERS[BOTH]['C']:g} and "
    f"{TAGGERS[BOTH]['max_iter']} passes for x+u. A token has binary features: the word at each of the {WINDOW} "
    "positions of the window, or that there is none; with u also location(c)=v and containedby(c)=v for every concept "
    "c of the universe that has such a value, the same for all tokens of the sentence."
)


# ---- One seed ----


class Trial:
    """The data of one seed, and the labeller that several parts look at."""

    def __init__(self, seed: int, sizes: tuple[int, int]) -> None:
        from larank.ambiguous.house import make_triples

        self.seed, first = seed, FIRST_SEED + 2 * seed
        self.train, self.test = (make_triples(size, random_state=first + part) for part, size in enumerate(sizes))

    @cached_property
    def reference(self) -> tuple[Any, float]:
        """NN_OF with both relations, and the seconds it took."""
        return self.fitted(METHODS[OF_BOTH])

    def fitted(self, method: Method, size: int | None = None) -> tuple[Any, float]:
        """A labeller that was trained on the first triples, and the seconds it took."""
        from larank import ConceptLabeler

        labeler = ConceptLabeler(method.relations, strategy=method.learner, random_state=self.seed)
        universes = _first(self.train.universes, size)
        return labeler, timed_fit(labeler, self.train.words[:size], self.train.concepts[:size], universes)


def _first(universes: Any, size: int | None) -> Any:
    from larank.ambiguous.universes import Universes

    tables = {name: table[:size] for name, table in universes.tables.items()}
    return Universes(universes.names, universes.n_concepts, tables)


def _error(labeler: Any, triples: Any) -> float:
    return 100 * (1 - float(labeler.score(triples.words, triples.concepts, triples.universes)))


# ---- Table C.2 ----

Rows = tuple[csr_matrix, NDArray[np.int64]]
"""A row for each token of all sentences, and how many tokens each sentence has: what a `SequenceTagger` takes."""


class TokenRows:
    """Which words stand where in the window of a token, and which facts hold in the whole universe.

    A token has a feature for each position of the window: the word there, or that the sentence does not reach so far.
    For each relation and each concept it has a feature for what the relation gives, if it gives something. These are
    the same for all tokens of a sentence.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], window: int, relations: Sequence[str]) -> None:
        words = sorted({word for sentence in sentences for word in sentence})
        self._numbers = {word: number for number, word in enumerate(words)}
        self._window, self._relations = window, tuple(relations)

    def of(self, triples: Any) -> Rows:
        lengths = np.array([len(sentence) for sentence in triples.words], dtype=np.int64)
        features, width = self._words(triples.words, lengths)
        is_there = np.ones(features.shape, dtype=bool)
        for relation in self._relations:
            table = getattr(triples, relation).astype(np.int64)
            n_concepts = table.shape[1]
            found = np.repeat(width + table + n_concepts * np.arange(n_concepts), lengths, axis=0)
            features = np.concatenate([features, found], axis=1)
            is_there = np.concatenate([is_there, np.repeat(table >= 0, lengths, axis=0)], axis=1)
            width += n_concepts**2
        starts = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))])
        ones = np.ones(starts[-1], dtype=np.float32)
        return csr_matrix((ones, features[is_there], starts), shape=(len(features), width)), lengths

    def _words(self, sentences: Sequence[Sequence[str]], lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """The features of the window of every token, and how many there are. Unknown words count as the end."""
        beyond = len(self._numbers)
        numbers = np.array([self._numbers.get(word, beyond) for sentence in sentences for word in sentence])
        whole = np.repeat(lengths, lengths)
        place = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = []
        for position in range(self._window):
            offset = position - self._window // 2
            inside = (place + offset >= 0) & (place + offset < whole)
            word = np.full(len(numbers), beyond)
            word[inside] = numbers[np.flatnonzero(inside) + offset]
            columns.append(position * (beyond + 1) + word)
        return np.stack(columns, axis=1), self._window * (beyond + 1)


def sentence_errors(found: NDArray[Any], right: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which sentences have a wrong label, by the labels of all tokens."""
    return np.logical_or.reduceat(found != right, np.cumsum(lengths) - lengths)


def _table(trials: Sequence[Trial], say: Say) -> list[shown.RowErrors]:
    found = []
    for trial in trials:
        for row, method in METHODS.items():
            learn = {TAGGER: _tagged, MEMORY: _remembered}.get(method.learner, _labelled)
            one = shown.RowErrors(row, trial.seed, *learn(trial, method))
            say(f"seed {trial.seed}, {row}: train {one.train:.2f} %, test {one.test:.2f} %, {one.seconds:.1f} s")
            found.append(one)
    return found


def _labelled(trial: Trial, method: Method) -> tuple[float, float, float]:
    is_reference = method == METHODS[OF_BOTH]
    labeler, seconds = trial.reference if is_reference else trial.fitted(method)
    return _error(labeler, trial.train), _error(labeler, trial.test), seconds


def _tagged(trial: Trial, method: Method) -> tuple[float, float, float]:
    from larank import SequenceTagger

    rows = TokenRows(trial.train.words, WINDOW, method.relations)
    data = [(rows.of(triples), np.concatenate(triples.concepts)) for triples in (trial.train, trial.test)]
    tagger = SequenceTagger(**TAGGERS[method.relations], random_state=trial.seed)
    seconds = timed_fit(tagger, *data[0], certify=False)
    train, test = (100 * float(np.mean(sentence_errors(tagger.predict(X), y, X[1]))) for X, y in data)
    return train, test, seconds


def _remembered(trial: Trial, _: Method) -> tuple[float, float, float]:
    began = time.perf_counter()
    sentences: dict[Any, Counter[Any]] = defaultdict(Counter)
    single: dict[str, Counter[str]] = defaultdict(Counter)
    for words, concepts in zip(trial.train.words, trial.train.concepts, strict=True):
        sentences[words][concepts] += 1
        for word, concept in zip(words, concepts, strict=True):
            single[word][concept] += 1
    whole = {words: counts.most_common(1)[0][0] for words, counts in sentences.items()}
    usual = {word: counts.most_common(1)[0][0] for word, counts in single.items()}
    seconds = time.perf_counter() - began

    def error(triples: Any) -> float:
        found = (whole.get(words) or tuple(usual.get(word) for word in words) for words in triples.words)
        return 100 * float(np.mean([one != right for one, right in zip(found, triples.concepts, strict=True)]))

    return error(trial.train), error(trial.test), seconds


# ---- The house ----


def _simulation(trials: Sequence[Trial]) -> list[shown.Cell]:
    """Counts of what occurs in the training triples of the first seed."""
    from larank.ambiguous.house import make_ambiguous_house
    from larank.ambiguous.verbs import CONCEPTS

    train, test = trials[0].train, trials[0].test
    symbols = {name for names in train.concepts for name in names}
    kinds = Counter(CONCEPTS[name] for name in symbols if name in CONCEPTS)
    plain = {word for part in make_ambiguous_house(random_state=FIRST_SEED) for one in part for word in one.words}
    words, meanings = [word for sentence in train.words for word in sentence], defaultdict[str, set[str]](set)
    for word, concept in zip(words, (name for names in train.concepts for name in names), strict=True):
        meanings[word].add(concept)
    several = {word for word, found in meanings.items() if len(found) > 1}
    counts = {
        "concepts": ("58", sum(kinds.values())),
        "  verbs": ("15", kinds["verb"]),
        "  actors": ("10", kinds["actor"]),
        "  small objects": ("15", kinds["object"]),
        "  rooms": ("6", kinds["room"]),
        "  furniture": ("12", kinds["furniture"]),
        "symbols, with the empty one": ("59", len(symbols)),
        "words, without pronouns (chapter 6)": ("74", len(plain)),
        "words, with pronouns (appendix C)": ("75", len(meanings)),
        "ambiguous sentences, %": ("about 55", 100 * float(np.mean(train.is_ambiguous))),
        "ambiguous words, %": ("-", 100 * float(np.mean([word in several for word in words]))),
        "training triples": ("50000", len(train.words)),
        "test triples": ("20000", len(test.words)),
    }
    return [shown.Cell(what, *both, ".1f" if "%" in what else "d") for what, both in counts.items()]


# ---- Table C.3 ----


def _classes() -> dict[str, tuple[str, ...]]:
    from larank.ambiguous.verbs import MEMBERS

    single = {f"{name}s": (name,) for name in ("male", "female", "animal", "toy")}
    several = {"food and drink": ("food", "drink"), "furniture": ("seat", "desk", "shelf", "container")}
    joined = single | several | {"rooms": ("room",), "verbs": ("verb",)}
    return {name: tuple(one for word in words for one in MEMBERS[word]) for name, words in joined.items()}


def _neighbours(trials: Sequence[Trial]) -> list[shown.Closeness]:
    from larank import ConceptLabeler

    found = []
    for trial in trials:
        blind = ConceptLabeler((), random_state=trial.seed).fit(trial.train.words, trial.train.concepts)
        found += [_closeness(KNOWING, trial.seed, trial.reference[0]), _closeness(BLIND, trial.seed, blind)]
    return found


def _closeness(row: str, seed: int, labeler: Any) -> shown.Closeness:
    from larank.ambiguous.meanings import EMPTY

    is_concept = labeler.concepts_ != EMPTY
    names, vectors = labeler.concepts_[is_concept].tolist(), labeler.concept_vectors_[is_concept]
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = {name: tuple(names[k] for k in np.argsort(row)[:2]) for name, row in zip(names, distances, strict=True)}
    return shown.Closeness(row, seed, nearest, purity(nearest, _classes()))


def purity(
    nearest: Mapping[str, Sequence[str]], classes: Mapping[str, Sequence[str]]
) -> dict[str, tuple[int, float, float, float]]:
    """By class and of all together: how many concepts, and the shares of `Closeness`."""
    rows: dict[str, list[tuple[float, float, float]]] = {"all": []}
    for name, members in classes.items():
        rows[name] = [
            (
                float(nearest[one][0] in members),
                float(np.mean([other in members for other in nearest[one]])),
                (len(members) - 1) / (len(nearest) - 1),
            )
            for one in members
        ]
        rows["all"] += rows[name]
    rows["all"] = rows.pop("all")  # as the last row
    return {name: (len(found), *map(float, np.mean(found, axis=0))) for name, found in rows.items()}  # type: ignore[misc]


# ---- Bags and the learning curve ----


def _weak(trials: Sequence[Trial], say: Say) -> list[shown.Weak]:
    from larank import ConceptLabeler

    found = []
    for trial in trials:
        labeler = ConceptLabeler(BOTH, supervision="bags", random_state=trial.seed)
        bags = [sorted(concepts) for concepts in trial.train.concepts]
        seconds = timed_fit(labeler, trial.train.words, bags, trial.train.universes)
        predicted = labeler.predict(trial.train.words, trial.train.universes)
        wrong = 100 * float(np.mean([sorted(one) != bag for one, bag in zip(predicted, bags, strict=True)]))
        one = shown.Weak(trial.seed, _error(labeler, trial.train), _error(labeler, trial.test), wrong, seconds)
        say(f"seed {trial.seed}, bags: train {one.train:.2f} %, test {one.test:.2f} %, {seconds:.1f} s")
        found.append(one)
    return found


def _curve(trials: Sequence[Trial], sizes: Iterable[int], say: Say) -> list[shown.Point]:
    found = []
    for trial in trials:
        for size in sizes:
            is_whole = size == len(trial.train.words)
            labeler, seconds = trial.reference if is_whole else trial.fitted(METHODS[OF_BOTH], size)
            found.append(shown.Point(trial.seed, size, _error(labeler, trial.test), seconds))
            say(f"seed {trial.seed}, {size} triples: {found[-1].error:.2f} %, {seconds:.1f} s")
    return found


# ---- Speed ----


def _speed(trial: Trial) -> shown.Speed:
    labeler, training = trial.reference
    result, words = labeler.result_, trial.test.words
    encoding = training - result.seconds
    labelling = labeler.n_iter_ * _timed_parts(labeler, trial.train)["labelling, core"]
    parts = min((_timed_parts(labeler, trial.test) for _ in range(REPEATS)), key=lambda one: sum(one.values()))
    learnt = result.operations["sentences"]
    steps = max(0.0, result.seconds - labelling)
    return shown.Speed(
        triples=len(trial.train.words),
        epochs=labeler.n_iter_,
        training={"checks and encoding, Python": encoding, "labelling, core": labelling, "steps, core": steps},
        sentences=len(words),
        words=sum(map(len, words)),
        prediction=parts,
        words_scored=result.argmax_calls / learnt,
        updates=result.operations["updates"] / learnt,
    )


def _timed_parts(labeler: Any, triples: Any) -> dict[str, float]:
    """Seconds of one call of `predict`: its encoding and the core alone are repeated by themselves."""
    learner = labeler._learner
    began = time.perf_counter()
    labeler.predict(triples.words, triples.universes)
    whole = time.perf_counter() - began
    began = time.perf_counter()
    corpus, core = learner.corpus(triples.words, triples.universes), learner.labeler()
    encoded = time.perf_counter()
    core.predict(corpus, 0, corpus.size)
    labelled = time.perf_counter()
    parts = {"encoding, Python": encoded - began, "labelling, core": labelled - encoded}
    return {**parts, "checks and names, Python": max(0.0, whole - sum(parts.values()))}


def _run(scope: Scope, say: Say) -> shown.ConceptFigures:
    sizes = QUICK_SIZES if scope.quick else SIZES
    trials = [Trial(seed, sizes) for seed in scope.seed_range(SEEDS)]
    work: dict[str, tuple[str, Callable[[], Any]]] = {
        "simulation": ("cells", lambda: _simulation(trials)),
        "table": ("errors", lambda: _table(trials, say)),
        "neighbours": ("closeness", lambda: _neighbours(trials)),
        "weak": ("weak", lambda: _weak(trials, say)),
        "curve": ("points", lambda: _curve(trials, QUICK_CURVE if scope.quick else CURVE, say)),
        "speed": ("speed", lambda: _speed(trials[0])),
    }
    found = {field: run() for field, run in (work[part] for part in scope.options.parts)}
    return shown.ConceptFigures(sizes, **found, quick=scope.quick, seeds_note=_SEEDS_NOTE, tagger_note=_TAGGER_NOTE)


_TITLE = "Words labelled by what is known of the world (thesis, tables C.2 and C.3)"
_OPTIONS = {"--parts": {"nargs": "+", "choices": PARTS, "default": PARTS, "help": "only these parts"}}
STUDY = Study("concepts", _TITLE, _run, ("house",), draw=shown.draw, has_seeds=True, options=_OPTIONS)
