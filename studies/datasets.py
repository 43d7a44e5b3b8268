"""The data sets of all studies, in the representation they use, with the C and gamma they are learned with."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

from larank.ambiguous.meanings import ParseExample, parse_meaning
from larank.data import data_directory, load_letter
from larank.data.columns import read_conll
from studies import generated

COVTYPE_TRAIN = 522_911  # [sdm] table 1.1
FOREST_TRAIN, FOREST_TEST = 100_000, 50_000  # [thesis] table 4.2
NOISE = 0.1  # share of training labels flipped, [thesis] table 4.2
FOLDS = 10  # of the words of OCR, [thesis] section 5.3.4
EMBEDDED = "letter"  # comes with the library
GENERATED = "generated"  # not read from anywhere
GEOQUERY = "geoquery"  # questions with their meanings

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """Examples and their labels, split as the source splits them.

    Examples are dense or CSR rows. Sequences come in the forms `SequenceTagger` takes: text is a list of sentences with
    a list of labels for each; images are the pair of an array, a row per token, and the lengths of the sequences, with
    one array of labels.
    """

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any

    def merged(self) -> tuple[Any, Labels]:
        parts = [self.X_train, self.X_test]
        X = sparse.vstack(parts, format="csr") if sparse.issparse(self.X_train) else np.concatenate(parts)
        return X, np.concatenate([self.y_train, self.y_test])

    def with_examples(self, changed: Callable[[Any], Any]) -> Dataset:
        return replace(self, X_train=changed(self.X_train), X_test=changed(self.X_test))

    def standardised(self) -> Dataset:
        """The same with columns of mean 0 and variance 1 in the training part."""
        return self.with_examples(StandardScaler().fit(self.X_train).transform)

    def drawn(self, train: int, test: int) -> Dataset:
        """So many examples of both parts, drawn with a fixed seed."""
        random = np.random.default_rng(0)
        kept = random.permutation(len(self.y_train))[:train]
        tested = random.permutation(len(self.y_test))[:test]
        return Dataset(self.X_train[kept], self.y_train[kept], self.X_test[tested], self.y_test[tested])

    def first(self, count: int, test: int | None = None) -> Dataset:
        """Return the first so many sentences of the training text, and as many as given, or all, of the test."""
        return Dataset(self.X_train[:count], self.y_train[:count], self.X_test[:test], self.y_test[:test])

    def with_flipped_labels(self, share: float = NOISE, seed: int = 0) -> Dataset:
        """The same with this share of the training labels -1 and +1 flipped, drawn with the seed."""
        flipped = np.random.default_rng(seed).permutation(len(self.y_train))[: round(share * len(self.y_train))]
        y_train = self.y_train.copy()
        y_train[flipped] *= -1
        return replace(self, y_train=y_train)


@dataclass(frozen=True)
class AmbiguousSet:
    """Dense examples with their true labels, which no learner sees, and a 0/1 matrix of candidates, a column a class.

    There is no split.
    """

    X: NDArray[np.float64]
    y: Labels
    candidates: NDArray[np.bool_]


@dataclass(frozen=True)
class Problem:
    """A data set, and the C and the gamma of the kernel exp(-gamma |x - x'|^2) it is learned with.

    `source` is the folder of data it is made from. `note` says what a paper leaves open and how it is settled here.
    `read_small` has a small form of what is generated.
    """

    source: str
    read: Callable[[], Dataset]
    C: float = 1.0
    gamma: float = 1.0
    note: str = ""
    read_small: Callable[[], Dataset] | None = None


# ---- Readers ----


def _stored(name: str) -> Any:
    return np.load(data_directory() / name / f"{name}.npz")


def _parts(name: str, read: Callable[[Any, str], Any]) -> Dataset:
    """What `read(stored, part)` makes of the training and of the test examples, with their labels."""
    with _stored(name) as stored:
        X = [read(stored, part) for part in ("train", "test")]
        y = [stored[f"y_{part}"].astype(np.int64) for part in ("train", "test")]
    return Dataset(X[0], y[0], X[1], y[1])


def _counts(stored: Any, part: str) -> sparse.csr_matrix:
    arrays = tuple(stored[f"X_{part}_{key}"] for key in ("data", "indices", "indptr"))
    counts = sparse.csr_matrix(arrays, shape=tuple(stored[f"X_{part}_shape"]), dtype=np.float64)
    counts.sort_indices()
    return counts


def _text(name: str) -> Dataset:
    """Word counts as l2-normalised tf-idf, the inverse document frequencies from the training part.

    The training rows are shuffled with a fixed seed: news20 is stored sorted by class.
    """
    counts = _parts(name, _counts)
    order = np.random.default_rng(0).permutation(len(counts.y_train))
    weighted = counts.with_examples(TfidfTransformer().fit(counts.X_train).transform)
    return replace(weighted, X_train=weighted.X_train[order], y_train=counts.y_train[order])


def _sparse(name: str) -> Dataset:
    return _parts(name, lambda stored, part: _counts(stored, part).astype(np.float32))


def _dense(name: str, scale: float = 1.0, shift: float = 0.0) -> Dataset:
    """Dense attributes x as x / scale + shift."""

    def read(stored: Any, part: str) -> NDArray[np.float32]:
        X: NDArray[np.float32] = stored[f"X_{part}"].astype(np.float32)
        X /= scale
        X += shift
        return X

    return _parts(name, read)


def _split(name: str) -> Dataset:
    stored = _stored(name)
    X, y = stored["X"].astype(np.float32), stored["y"].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
    return Dataset(X[train], y[train], X[test], y[test])


def _letter() -> Dataset:
    """Raw values 0 to 15, the letters numbered."""
    letter = load_letter()
    classes = np.unique(letter.y_train)
    X = (part.astype(np.float32) for part in (letter.X_train, letter.X_test))
    y = (np.searchsorted(classes, labels) for labels in (letter.y_train, letter.y_test))
    return Dataset(next(X), next(y), next(X), next(y))


def _three_letters() -> Dataset:
    """Those of A, B and E, numbered from 0."""
    letters, kept = _letter(), np.array([0, 1, 4])
    parts: list[Any] = []
    for X, y in ((letters.X_train, letters.y_train), (letters.X_test, letters.y_test)):
        chosen = np.isin(y, kept)
        parts += [X[chosen], np.searchsorted(kept, y[chosen])]
    return Dataset(*parts)


def _as_csr(data: Dataset, largest: float) -> Dataset:
    """Integer attributes from 0 to `largest` scaled to [0, 1], as CSR rows in float64."""
    return data.with_examples(lambda X: sparse.csr_matrix(X, dtype=np.float64) / largest)


def _covtype(train: int = COVTYPE_TRAIN, test: int | None = None) -> Dataset:
    """Each column scaled to [0, 1]; a seeded split of these sizes."""
    with _stored("covtype") as stored:
        columns, labels = stored["X"], stored["y"].astype(np.int64)
    low, high = columns.min(axis=0), columns.max(axis=0)
    order = np.random.default_rng(0).permutation(len(labels))
    rows = order[:train], order[train : None if test is None else train + test]
    X = ((columns[part] - low) / np.maximum(high.astype(np.float64) - low, 1.0) for part in rows)
    return Dataset(next(X), labels[rows[0]], next(X), labels[rows[1]])


def _in_float32(data: Dataset) -> Dataset:
    return data.with_examples(lambda X: X.astype(np.float32))


def _against_rest(data: Dataset, label: int) -> Dataset:
    y_train, y_test = (np.where(y == label, 1, -1) for y in (data.y_train, data.y_test))
    return replace(data, y_train=y_train, y_test=y_test)


def _forest(train: int, test: int | None = None) -> Dataset:
    """Cover type 2 against the rest."""
    return _against_rest(_in_float32(_covtype(train, test)), 1)


def _words_in_images(fold: int) -> Dataset:
    """Train on the words of one fold and test on the other nine; pixels 0 and 1."""
    with _stored("ocr_words") as stored:
        pixels, labels, starts, folds = (stored[key] for key in ("X", "y", "word_ptr", "fold"))
    lengths = np.diff(starts.astype(np.int64))
    parts = []
    for words in (folds == fold, folds != fold):
        letters = np.repeat(words, lengths)
        parts += [(pixels[letters].astype(np.float64), lengths[words]), labels[letters].astype(np.int64)]
    return Dataset(*parts)


def _chunks(fold: int) -> Dataset:
    """Words with parts of speech; there is one split only."""
    parts = (read_conll(data_directory() / "conll2000" / f"{part}.txt.xz") for part in ("train", "test"))
    return Dataset(*next(parts), *next(parts))


def _parts_of_speech(fold: int) -> Dataset:
    """Words alone, to be given their universal tags; there is one split only."""
    found: list[Any] = []
    for part in ("train", "test"):
        path = data_directory() / "ud_ewt" / f"{part}.txt.xz"
        sentences, tags = read_conll(path, columns=("word", "penn"), label=1, separator="\t")
        found += [[[word for word, _ in sentence] for sentence in sentences], tags]
    return Dataset(*found)


def _ambiguous(name: str) -> AmbiguousSet:
    with _stored(name) as stored:
        X, y, candidates = (stored[key] for key in ("X", "y", "candidates"))
    return AmbiguousSet(X.astype(np.float64), y.astype(np.int64), candidates.astype(bool))


def load_questions() -> list[ParseExample]:
    """The English questions of GeoQuery, in lower case, each with its one meaning in FunQL; raises as `load` does."""
    _check(GEOQUERY, {GEOQUERY: GEOQUERY})
    with lzma.open(_questions_path()) as file:
        examples = ElementTree.parse(file).getroot()
    found = []
    for example in examples:
        texts = {node.get("lang"): (node.text or "").strip() for node in example if node.tag in ("nl", "mrl")}
        found.append(ParseExample(tuple(texts["en"].lower().split()), (), parse_meaning(texts["geo-funql"])))
    return found


def _questions_path() -> Path:
    return data_directory() / GEOQUERY / "geoquery_multilingual.xml.xz"


# ---- The problems ----

LINEAR: dict[str, Problem] = {
    "news20": Problem("news20", partial(_text, "news20")),
    "reuters_r52": Problem("reuters_r52", partial(_text, "reuters_r52")),
    "mnist": Problem("mnist", lambda: _as_csr(_dense("mnist"), 255.0)),
    "covtype": Problem("covtype", lambda: _covtype().with_examples(sparse.csr_matrix)),
    "letter": Problem("letter", lambda: _as_csr(_letter(), 15.0)),
}
"""Of the linear studies: CSR rows in float64."""

_USPS = "values in [0, 1] and gamma 0.037. The paper does not state its preprocessing; this has its optimum"


def _noisy_mnist() -> Dataset:
    random = np.random.default_rng(0)
    return KERNEL["mnist"].read().with_examples(lambda X: X + random.normal(0, 0.01, X.shape).astype(X.dtype))


KERNEL: dict[str, Problem] = {
    "mnist": Problem("mnist", partial(_dense, "mnist", 127.5, -1.0), 1000.0, 0.005),
    "usps": Problem("usps", partial(_dense, "usps", 2.0, 0.5), 10.0, 0.037, _USPS),
    "letter": Problem("letter", _letter, 10.0, 0.025),
    "mnist-noise": Problem("mnist", _noisy_mnist, 1000.0, 0.005, "with noise, so that no lattice exists"),
}
"""Of the kernel studies, [larank] table 1: dense rows in float32; letter 0 to 15, usps in [0, 1], mnist in [-1, 1]."""

_ZERO_OF_USPS = (
    "values in [0, 1] and gamma 2/256: the thesis prints gamma 2 and not its scaling; with 2 itself almost every "
    "example is a support vector"
)
_WAVEFORM = (
    "class 0 against the rest, unscaled; the thesis says neither, and its count of support vectors is that of class 1 "
    "with columns of unit variance"
)
_FOREST = "a draw with seed 0; columns scaled to [0, 1], which the thesis does not say, so its errors do not compare"
_MNIST = (
    "values in [-1, 1]: the thesis does not state its scaling, and with this one the exact solution of the ten "
    "problems together has its test error, 1.36 %"
)


def _one_of(name: str, label: int) -> Dataset:
    """One class of a kernel study against the rest."""
    return _against_rest(KERNEL[name].read(), label)


def _with_noise(problem: Problem, **others: Any) -> Problem:
    note = f"{problem.note}; labels flipped with seed 0"
    return replace(problem, read=lambda: problem.read().with_flipped_labels(), note=note, **others)


BINARY: dict[str, Problem] = {
    "waveform": Problem("waveform", lambda: _against_rest(_dense("waveform"), 0), 1.0, 0.05, _WAVEFORM),
    "banana": Problem("banana", partial(_dense, "banana"), 316.0, 0.5),
    "reuters": Problem("reuters_moneyfx", partial(_sparse, "reuters_moneyfx"), 1.0, 1.0),
    "usps": (_usps := Problem("usps", partial(_one_of, "usps", 0), 1000.0, 2 / 256, _ZERO_OF_USPS)),
    "usps-noise": _with_noise(_usps, C=10.0),
    "adult": Problem("adult_a9a", partial(_sparse, "adult_a9a"), 100.0, 0.005),
    "covtype100k": Problem("covtype", partial(_forest, FOREST_TRAIN, FOREST_TEST), 3.0, 1.0, _FOREST),
    **{
        f"mnist{digit}": Problem("mnist", partial(_one_of, "mnist", digit), 1000.0, 0.005, _MNIST)
        for digit in range(10)
    },
    "mnist8-noise": _with_noise(Problem("mnist", partial(_one_of, "mnist", 8), 1000.0, 0.005, _MNIST)),
}
"""Of the binary studies: [thesis] table 4.2, and each digit of MNIST against the others; rows in float32."""


def _generated(draw: Callable[..., Any], whole: tuple[int, ...], small: tuple[int, ...], note: str) -> Problem:
    return Problem(GENERATED, lambda: Dataset(*draw(*whole)), note=note, read_small=lambda: Dataset(*draw(*small)))


_ALPHA = "generated with the shape of ALPHA of the Pascal challenge: 500 features on uneven scales"
_RCV1 = "generated with the shape of RCV1: words by Zipf's law"
_GROUP = "the first group against the rest; tf-idf"
_SECOND = "cover type 2 against the rest; columns scaled to [0, 1]"
GRADIENT: dict[str, Problem] = {
    "alpha": _generated(generated.ill_conditioned, (100_000, 50_000), (4_000, 2_000, 50), _ALPHA),
    "covtype2": Problem("covtype", partial(_forest, COVTYPE_TRAIN), note=_SECOND),
    "news20-0": Problem("news20", lambda: _in_float32(_against_rest(_text("news20"), 0)), note=_GROUP),
    "rcv1": _generated(generated.text_like, (781_265, 23_149), (4_000, 2_000, 5_000), _RCV1),
}
"""Of the studies of stochastic gradient descent, [thesis] table 3.4: labels of two signs, rows in float32."""

LOGISTIC: dict[str, Problem] = {
    "news20": Problem("news20", lambda: _in_float32(_text("news20")), note="tf-idf, CSR"),
    "mnist": Problem("mnist", partial(_dense, "mnist", 255.0), note="values in [0, 1]"),
    "covtype": Problem("covtype", lambda: _in_float32(_covtype()), note="columns in [0, 1]"),
    "letter": Problem("letter", lambda: _letter().with_examples(lambda X: X / np.float32(15)), note="values in [0, 1]"),
}
"""Of the comparison with logistic regression: rows in float32, dense but for text."""

_STANDARDISED = "columns of mean 0 and variance 1 in the training part"
SMALL: dict[str, Problem] = {
    "abe": Problem("letter", _three_letters, note=f"letters A, B and E, {_STANDARDISED}"),
    "dna": Problem("dna", partial(_dense, "dna"), note="as it is, 0 and 1"),
    "sat": Problem("satimage", partial(_dense, "satimage"), note=_STANDARDISED),
    "seg": Problem("segment", partial(_dense, "segment"), note=_STANDARDISED),
    "wav": Problem("waveform", partial(_dense, "waveform"), note=_STANDARDISED),
}
"""Of [primal] table 1.1: dense rows in float32, as they are stored; the note says how the study scales them."""

UNSPLIT: dict[str, Problem] = {"glass": Problem("glass", partial(_split, "glass"))}
"""Sets that come in one part, two thirds of it for training."""

SEQUENCES: dict[str, Callable[[int], Dataset]] = {
    "ocr_words": _words_in_images,
    "conll2000": _chunks,
    "ud_ewt": _parts_of_speech,
}
"""Of the sequence studies, [thesis] table 5.4; ud_ewt stands in for the Wall Street Journal."""

AMBIGUOUS: dict[str, Callable[[], AmbiguousSet]] = {
    name: partial(_ambiguous, name) for name in ("pl_lost", "pl_msrcv2", "pl_birdsong", "pl_fgnet")
}
"""Real sets of candidates, for [thesis] section 6.1."""


def is_available(source: str) -> bool:
    if source in (EMBEDDED, GENERATED):
        return True
    try:
        folder = data_directory() / source
    except FileNotFoundError:
        return False
    if source == GEOQUERY:
        return _questions_path().is_file()
    return (folder / f"{source}.npz").is_file() or (folder / "train.txt.xz").is_file()


def load(name: str, problems: Mapping[str, Problem]) -> Dataset:
    """Read one of `LINEAR`, `KERNEL`, `BINARY`, `GRADIENT`, `LOGISTIC` or `SMALL`.

    Raises ValueError if none of them has this name, and FileNotFoundError if its file is not in a data directory.
    """
    _check(name, problems)
    return problems[name].read()


def load_small(name: str, problems: Mapping[str, Problem], train: int, test: int) -> Dataset:
    """So many examples of both parts, or the small form of what is generated; raises as `load` does."""
    _check(name, problems)
    read_small = problems[name].read_small
    return load(name, problems).drawn(train, test) if read_small is None else read_small()


def load_sequences(name: str, fold: int = 0) -> Dataset:
    """Read one of `SEQUENCES`; where there are folds, train on this one; raises as `load` does."""
    _check(name, SEQUENCES)
    return SEQUENCES[name](fold)


def load_ambiguous(name: str) -> AmbiguousSet:
    """Read one of `AMBIGUOUS`; raises as `load` does."""
    _check(name, AMBIGUOUS)
    return AMBIGUOUS[name]()


def _check(name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise ValueError(f"name={name!r} is not a data set; accepted are {', '.join(known)}")
    source = getattr(known[name], "source", name)
    if not is_available(source):
        raise FileNotFoundError(f"data set {source!r} is not in {data_directory()}; LARANK_DATA names the data folder")
