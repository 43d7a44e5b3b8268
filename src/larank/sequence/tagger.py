"""`SequenceTagger`: labels for the tokens of sequences, by LaRankExact and LaRankGreedy, [thesis] section 5.3."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from larank import _core, declare, parameters
from larank.base import Estimator, absent, of_streams
from larank.blocks.workers import Workers, blas_threads
from larank.costs import example_costs
from larank.data.columns import ConllFile, read_conll
from larank.data.files import PathLike
from larank.data.models import persistable
from larank.data.schema import RESULT, SchemaError, Scope, floats, integer, labels, optional
from larank.declare import LARGEST_COUNT, ParameterError, fitted, parameter
from larank.docstrings import with_paragraphs
from larank.parameters import LaRank, Seeded, Stopping, Threaded
from larank.publishing import copied, next_model, of_one_model, one_model
from larank.sequence.beam import beam_paths
from larank.sequence.chain import Chain, as_core
from larank.sequence.confidence import (
    ConfidentEntity,
    ConfidentLabel,
    calibrated,
    entity_margins,
    probabilities,
    token_margins,
)
from larank.sequence.constraints import Constraints, check_constraints, follows
from larank.sequence.corpora import Corpus, FileCorpus, HeldCorpus, LabelledSequences
from larank.sequence.entities import entities, has_chunks
from larank.sequence.explaining import Explanation, WeightOf, explained, strongest
from larank.sequence.features import ENCODERS, Encoder, TemplateEncoder, encoder_for, is_ragged
from larank.sequence.inference import Greedy
from larank.sequence.labels import LabelNumbers, check_label_costs, flat_labels, sorted_labels
from larank.sequence.sequences import Sequences
from larank.sequence.training import STATE, ChainTraining, Learner, Pin, RoundsToGap
from larank.sequence.wronglabels import WrongLabels, labels_to_mend, named_by_line, refuse_wrong_labels
from larank.training import (
    CheckpointFile,
    CheckpointRequest,
    DataPart,
    Limits,
    Outcome,
    Result,
    check_arrived,
    check_resumes,
    file_as_data,
    first_interrupt,
    progress_for,
    train,
    warn_if_early,
)
from larank.validation import check_several_classes

_MOST_PASSES = 1000  # with `tol`
_N_REPROCESS = {"exact": 5, "greedy": 1}  # [thesis] table 5.4
_TAU = 1e-10  # steps on smaller differences of derivatives are left alone, [thesis] section 5.1.5
_PREDICTION_TOKENS = 50_000
_COPIED_PER_LOOK = 100  # bytes that are copied in a fiftieth of the time that a look at a token takes
_FIXED_IN_A_STREAM = ("order", "templates", "columns", "constraints", "label_costs", "average")


class RankedPath(NamedTuple):
    """One of the n best label sequences: its labels, its score, and by how much it beats the next one.

    For greedy inference the score is minus what the labels give away, see `SequenceTagger.predict_nbest`.
    """

    labels: list[Any]
    score: float
    margin: float


def _check_state(name: str, value: Any, scope: Scope) -> None:
    """The labels are those in `classes_`; a session has what its solver needs."""
    scope.sizes["order"] = scope.known["order"]
    STATE(name, value, scope)
    if sorted_labels(value["labels"]).tolist() != scope.known["classes_"].tolist():
        raise SchemaError(f"{name}['labels'] must be those in classes_, got {value['labels']!r}")
    solver, average = scope.known["solver"], {"stretches", "early"}
    is_larank = isinstance(solver, LaRank) or solver == "larank"
    needed = {"patterns"} if is_larank else average
    if is_larank and "early" in value["session"]:
        needed = {"patterns", "early_of_outputs", *average}
    if not needed <= value["session"].keys():
        raise SchemaError(f"{name}['session'] must have {', '.join(sorted(needed))}, got {sorted(value['session'])}")


def _check_calibration(name: str, value: Any, scope: Scope) -> None:
    """A line for tokens, and one for entities where labels are those of entities."""
    floats(1 + has_chunks(scope.known["classes_"].tolist()), 2)(name, value, scope)


@persistable(
    classes_=labels("n_classes"),
    n_iter_=integer(),
    result_=RESULT,
    calibration_=optional(_check_calibration),
    _state=_check_state,
)
class SequenceTagger(Stopping, Threaded, Seeded, Estimator):
    """Labels for the tokens of sequences: a large-margin tagger that learns in one pass and keeps learning.

    It minimises ``1/2 |w|^2 + C sum_i max_y (Delta(y_i, y) - <w, Phi(x_i, y_i) - Phi(x_i, y)>)``, where a token's
    features and the pairs of its label with each of the `order` labels before it have weights in ``w``. For exact
    inference, i goes over sequences and ``Delta`` counts wrong labels. For greedy inference, i goes over tokens, each
    after its true history.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    coef_ : csr_matrix of shape (n_features, n_classes)
        Weights of features.
    transitions_ : ndarray of shape (order, n_classes + 1, n_classes)
        ``transitions_[s - 1, 1 + p, y]``: the weight of label y where p is s tokens before; row 0: no label.
    columns_ : tuple of str or None
        The columns of text that a token has; None where tokens are not text.
    result_ : Result
        The certificate: objectives from scratch, gap, counts, seconds and the history.
    n_iter_ : int
        Passes over the data, rounded up.
    calibration_ : ndarray of shape (1, 2) or (2, 2)
        After `calibrate`: slope and height of the logistic functions of log(1 + margin), for tokens and for entities.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 5.3.

    Examples
    --------
    >>> from larank import SequenceTagger
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]] * 5
    >>> y = [["DET", "NOUN", "VERB"]] * 15
    >>> tagger = SequenceTagger(random_state=0).fit(X, y)
    >>> tagger.predict([["a", "dog", "sleeps"]])
    array([list(['DET', 'NOUN', 'VERB'])], dtype=object)
    """

    inference: Literal["exact", "greedy"] | Greedy = parameter(
        'How labels are predicted. "exact" finds the label sequence with the highest score (Viterbi); time grows with '
        'labels^(order + 1). "greedy" takes the best label for one token after the other, given the labels before it; '
        "it is faster and suits any order. ``Greedy(history=...)`` sets which labels those are in training.",
        default="exact",
        kw_only=False,
    )
    order: int = parameter(
        "Number of labels before a token that its label depends on. Sequences may be shorter.",
        default=1,
        least=0,
        most=255,
    )
    C: float = parameter(
        "Inverse regularisation strength: the cost of a loss of one against ``1/2 |w|^2``. Larger values fit the "
        "training data more closely.",
        default=0.1,
        above=0,
    )
    solver: Literal["larank", "perceptron", "passive-aggressive"] | LaRank = parameter(
        'Algorithm that trains the model. "larank" trains the large-margin problem, returns to stored sequences, and '
        'has a certificate; ``LaRank(n_reprocess=...)`` sets how often it returns. "perceptron" and '
        '"passive-aggressive" make one step per example and store no sequences.',
        default="larank",
    )
    templates: str | Sequence[str] | None = parameter(
        "Templates that make features of tokens that are text, see `larank.sequence.features`: the name of a set "
        '("general", "words" or "chunking") or a list of templates. By default "general", which uses all columns. '
        '"words" uses the column word only, and "chunking" is the set of CRFsuite\'s example for the columns word and '
        "pos. No effect if tokens are not text.",
        default=None,
        form="str or sequence of str",
    )
    columns: Sequence[str] | None = parameter(
        "Names of the columns of a token, by which templates refer to them. By default word, pos, col2, ...",
        default=None,
        form="sequence of str",
    )
    constraints: Constraints = parameter(
        'Which label may follow which, in training and in prediction: the scheme "BIO" or "BILOU", or a function '
        "``allowed(previous, label)`` that is called with None for the beginning and the end. By default every label "
        "may follow every other.",
        default=None,
        check=check_constraints,
        choices=("BIO", "BILOU"),
        form="callable",
    )
    repair: bool = parameter(
        'Whether labels that break the constraints "BIO" or "BILOU" are changed to the scheme, as conlleval reads '
        "them, in `fit`, `partial_fit`, `calibrate` and `score`. If False, such labels in training are an error that "
        "lists them before training begins.",
        default=False,
    )
    label_costs: Mapping[tuple[Any, Any], float] | None = parameter(
        "Loss of predicting label ``b`` for a token of label ``a``: ``{(a, b): cost}``. By default 1 for all pairs; "
        "pairs that the mapping does not name have 1, too. Not available with the perceptron.",
        default=None,
        check=check_label_costs,
        form="mapping",
    )
    average: bool | Literal["auto"] = parameter(
        "Whether the model is the average of the weights during training instead of the last weights, which depend "
        'much on the last sequences. The perceptrons average all weights, LaRank about the last sixteenth. "auto" '
        "averages with LaRank if `tol` is None. In `partial_fit` the average continues as a shorter one, of which "
        "each new sequence makes up 6 %, except with the perceptron, which continues to average all weights. An "
        "average takes twice the memory for weights.",
        default="auto",
    )
    max_support: int | None = parameter(
        "Maximum number of support patterns that LaRank stores and returns to, at least 2. If there are more, random "
        "ones are removed, and what they have contributed to the weights remains. By default there is no maximum. Not "
        "available with `tol`.",
        default=None,
        least=2,
    )
    tol: float | None = parameter(
        "Relative duality gap, ``(primal - dual) / primal``, at which training stops, available with LaRank. By "
        "default `max_iter` passes are made, whatever the gap is.",
        default=None,
        above=0,
    )
    max_iter: int | None = parameter(
        "Number of passes over the data in `fit`; with `tol` the largest number, after which training stops with a "
        "warning. By default one pass is made, and at most 1000 with `tol`. `partial_fit` always makes one.",
        default=None,
        least=1,
    )
    memory_limit: float = parameter(
        "Maximum memory in bytes for the support patterns that LaRank returns to, and for encoded text of a file that "
        "is kept for the next pass. If support patterns take more, random ones are removed. The weights come in "
        "addition: one per feature and label, and their average. If they alone would take more than `memory_limit` "
        "and more than 64 MB, training stops with a `MemoryLimitError`.",
        default=2e9,
        above=0,
        most=LARGEST_COUNT,
    )
    n_jobs: int | None = parameter(
        "Number of threads for prediction, the certificate and reading ahead in a file. By default as many as BLAS "
        "uses; -1 uses all processors.",
        default=None,
        check=parameters.not_zero,
        form="int",
    )
    random_state: int | np.random.RandomState | None = parameter(
        "Seed for the order of the sequences and the choice of stored ones. An integer makes the model reproducible.",
        default=None,
        check=parameters.seed,
        form="int or RandomState",
    )

    _learner: Learner = fitted()
    _pin: Pin = fitted()

    predict_proba: ClassVar[Any] = absent(
        "because the labels of a sequence are predicted together. Use calibrate and then predict_confidence, which has "
        "a probability for each label"
    )

    @with_paragraphs
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        certify: bool | Literal["auto"] = "auto",
        checkpoint: PathLike | None = None,
        every: float = 30.0,
        resume: bool = False,
    ) -> Self:
        """Train on sequences and their labels.

        Parameters
        ----------
        X : sequence of sequences of tokens, or (array, lengths), or ConllFile
            Tokens are str or tuples of str, of which templates make features; dicts of features; or lists or sets of
            names of features; all of one kind. Or the rows of all tokens (dense or CSR) and how many rows each sequence
            has. Or a file in columns.
        y : sequence of sequences of labels
            One label per token; for ``(array, lengths)`` an array with one label per row; for a file nothing, since
            labels are in it.
        sample_weight : array of shape (n_sequences,), optional
            Factors on ``C`` per sequence, not negative; not for a file.
        certify : bool or "auto", default="auto"
            Whether to compute both objectives on all data after training, which takes one prediction of all sequences.
            If False, `result_` holds an estimate from training. "auto" is True here. The certificate exists for LaRank,
            and for one pass of "passive-aggressive" without average, unless ``Greedy(history="predicted")`` is set.
        [checkpoint]

        Returns
        -------
        SequenceTagger
            The fitted tagger. If training ends early, a `TrainingWarning` is issued, and the model is still valid.

        Raises
        ------
        ValueError
            If anything is wrong with the data, or all labels are one; `partial_fit` may begin with one label.
        """
        with next_model(self) as model:
            outcome = model._fit(X, y, sample_weight, certify, CheckpointRequest(checkpoint, every, resume))
        self._warn_if_early(outcome)
        return self

    @of_streams
    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Continue training with new sequences, in the given order; `X`, `y` and `sample_weight` are as in `fit`.

        Each call makes one pass over its sequences, whatever `max_iter` is. New labels and features are added to the
        model. `result_` holds an estimate of the objectives. A copy is trained, so that other threads can predict
        meanwhile, and if a line of a file is wrong, the model is unchanged. If copying the model would take longer than
        learning from few sequences, it is trained in place, and predictions wait; if memory or an interrupt ends such a
        call, the model has learned from the sequences before.
        """
        with ExitStack() as turn, next_model(self) as model:
            outcome = model._partial_fit(X, y, sample_weight, turn)
        self._warn_if_early(outcome)
        return self

    @of_one_model
    def predict(self, X: Any) -> Any:
        """The labels of each token.

        Parameters
        ----------
        X : sequence of sequences of tokens, or (array, lengths), or ConllFile
            As for `fit`; labels in a file are not looked at.

        Returns
        -------
        ndarray of shape (n_sequences,), of lists of labels; or ndarray of shape (n_tokens,)
            An array of objects with one list per sequence, whatever their lengths, as from `sklearn_crfsuite.CRF`;
            `.tolist()` makes lists of lists. An array with one label per row for ``(array, lengths)``.
        """
        check_is_fitted(self, "classes_")
        if isinstance(X, ConllFile):
            return np.concatenate(list(self.predict_blocks(X)))
        sequences = self._encoded(X)
        labels = self._predicted(sequences)
        return labels if is_ragged(X) else _split(labels, sequences.starts)

    @of_one_model
    def predict_blocks(self, file: ConllFile) -> Iterator[NDArray[np.object_]]:
        """The labels of a file of any size, some thousand sentences at a time; labels in it are not looked at.

        A block is an array of lists as from `predict`.
        """
        check_is_fitted(self, "classes_")
        for block in file.blocks(_PREDICTION_TOKENS):
            sequences = self._encoded(block)
            yield _split(self._predicted(sequences), sequences.starts)

    @of_one_model
    def score(self, X: Any, y: Any = None) -> float:
        """The share of tokens whose label is predicted, `X` and `y` being those of `fit`.

        For entities see `larank.sequence.entities.entity_report`.
        """
        check_is_fitted(self, "classes_")
        if isinstance(X, ConllFile):
            _check_file(X, y, None)
            return self._file_score(X)
        sequences = self._encoded(X)
        if not sequences.n_tokens:
            raise ValueError("X must hold at least one token for a score, got none")
        known = self._learner.labels.known(self._given_labels(X, y, sequences))
        return float(np.mean(self._chain.predict(sequences, self._workers()) == known))

    @of_one_model
    def predict_nbest(self, X: Any, n: int = 5) -> list[list[RankedPath]]:
        """The n best label sequences of each sequence, best first, or all of them where there are fewer.

        They come with their scores, and by how much each beats the next; the last of all beats nothing by infinity. For
        greedy inference they are the best that a beam of four times as many finds, and the score is minus what they
        give away: how far each label is behind the best one after the same labels, in all. The first are those of
        `predict`.
        """
        check_is_fitted(self, "classes_")
        parameters.whole_number("n", n, at_least=1)
        every = self._encoded(X)
        sequences, numbers = every.without_empty()
        names = self._names()
        found = [[RankedPath([], 0.0, math.inf)] for _ in range(len(every))]
        for i, paths in zip(numbers.tolist(), self._best_paths(sequences, n + 1), strict=True):
            if not paths:
                raise ValueError(f"constraints={self.constraints!r} must allow some labels for X[{i}], got none")
            ranked = pairwise([*paths, (None, -math.inf)])
            found[i] = [RankedPath(names[path].tolist(), s, s - behind) for (path, s), (_, behind) in ranked][:n]
        return found

    def _best_paths(self, sequences: Sequences, count: int) -> Iterator[list[tuple[NDArray[np.int32], float]]]:
        """The best label sequences of each sequence, which has tokens, with their scores."""
        chain = self._chain
        if chain.inference == "exact":
            seen = as_core(sequences)
            yield from (chain.model.best_paths(seen, i, count) for i in range(len(seen)))
            return
        nodes, pairs = chain.scores(sequences), chain.model.transitions()
        allowed = follows(self.constraints, self._learner.labels.labels)
        for start, end in pairwise(sequences.starts.tolist()):
            yield beam_paths(nodes[start:end], pairs, allowed, count)

    @of_one_model
    def predict_confidence(self, X: Any) -> list[list[ConfidentLabel]]:
        """The labels of each token with their margins: how far the best sequence with another label there is behind.

        For greedy inference, how far the next best label is behind after the same labels. Once the tagger is
        calibrated, each label has the probability that it is right.
        """
        check_is_fitted(self, "classes_")
        labels, margins, starts = self._with_margins(X)
        sure = self._probabilities(0, margins)
        tokens = [ConfidentLabel(*token) for token in zip(labels.tolist(), margins.tolist(), sure, strict=True)]
        return [tokens[begin:end] for begin, end in pairwise(starts.tolist())]

    @of_one_model
    def predict_entities(self, X: Any) -> list[list[ConfidentEntity]]:
        """The entities of each sequence by the rules of conlleval, with their margins; labels are to be B-NP, O, ...

        The margin is how far sequences without the entity are behind at least. Once the tagger is calibrated, each
        entity has the probability that its extent and type are right.
        """
        check_is_fitted(self, "classes_")
        self._check_entities()
        labels, margins, starts = self._with_margins(X)
        return [
            [ConfidentEntity(*entity, margin, *self._probabilities(1, np.array([margin]))) for entity, margin in found]
            for found in (entity_margins(labels[a:b].tolist(), margins[a:b]) for a, b in pairwise(starts.tolist()))
        ]

    def calibrate(self, X: Any, y: Any = None) -> Self:
        """Learn from data that were not trained on how sure margins are; the arguments are those of `fit`.

        `predict_confidence` and `predict_entities` then give probabilities. Further training makes them void.
        """
        with next_model(self) as model:
            check_is_fitted(model, "classes_")
            model.calibration_ = model._calibrated(X, y)
        return self

    def _calibrated(self, X: Any, y: Any) -> NDArray[np.float64]:
        """A logistic function of the margins of tokens, and one for those of entities, where labels have these."""
        if isinstance(X, ConllFile):
            _check_file(X, y, None)
            X, y = _held(X)
        labels, margins, starts = self._with_margins(X)
        known = self._given_labels(X, y, self._encoded(X))
        true = np.empty(len(known), dtype=object)
        true[:] = known
        if not len(true):
            raise ValueError("X must hold at least one token to calibrate with, got none")
        if not set(known) & set(self.classes_.tolist()):
            raise ValueError(
                f"y must hold labels of the tagger, {self.classes_.tolist()!r}; got {sorted(set(known))!r}"
            )
        lines = [calibrated(margins, labels == true)]
        if has_chunks(self.classes_.tolist()):
            found, right = [], []
            for a, b in pairwise(starts.tolist()):
                real = set(entities(true[a:b].tolist()))
                for entity, margin in entity_margins(labels[a:b].tolist(), margins[a:b]):
                    found.append(margin)
                    right.append(entity in real)
            lines.append(calibrated(np.array(found), np.array(right)) if found else lines[0])
        return np.array(lines)

    def _with_margins(self, X: Any) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
        """The label and the margin of each token, and where the sequences begin."""
        if isinstance(X, ConllFile):
            X, _ = _held(X)
        every = self._encoded(X)
        sequences, _ = every.without_empty()
        path = self._chain.predict(sequences, self._workers())
        margins = token_margins(self._chain, sequences, path, self._learner.labels.labels)
        return self._names()[path], margins, every.starts

    def _probabilities(self, line: int, margins: NDArray[np.float64]) -> list[Any]:
        if not hasattr(self, "calibration_"):
            return [None] * len(margins)
        return list(probabilities(self.calibration_[line], margins).tolist())

    def _check_entities(self) -> None:
        if not has_chunks(self.classes_.tolist()):
            raise ValueError(f"entities are found by labels such as B-NP, I-NP and O; got {self.classes_.tolist()!r}")

    @of_one_model
    def explain(self, sentence: Any, top: int = 10) -> Explanation:
        """Why each token of a sequence got its label and not the next best one.

        Parameters
        ----------
        sentence : sequence of tokens, or 2-D array
            One sequence.
        top : int, default=10
            How many features to show per token, those that decided most first.

        Returns
        -------
        Explanation
            Printable. Per token: label, runner-up, by how much the best sequence with another label there is behind,
            and what features and transitions contributed.
        """
        check_is_fitted(self, "classes_")
        parameters.whole_number("top", top, at_least=1)
        X = (sentence, [len(sentence)]) if isinstance(sentence, np.ndarray) and sentence.ndim == 2 else [sentence]
        learner, sequences = self._learner, self._encoded(X)
        if not sequences.n_tokens:
            return Explanation((), 0.0)
        return explained(self._chain, learner.encoder, sequences, learner.labels.labels, list(sentence), top)

    @of_one_model
    def weights(self, label: Any, top: int = 20) -> list[WeightOf]:
        """The `top` features and transitions that speak most for and against a label of `classes_`."""
        check_is_fitted(self, "classes_")
        parameters.whole_number("top", top, at_least=1)
        column = self._learner.labels.known([label])[0]
        if column < 0:
            raise ValueError(f"label must be one of {self.classes_.tolist()!r}, got {label!r}")
        return strongest(self._chain, self._learner.encoder, self._learner.labels.labels, column, top)

    @property
    @of_one_model
    def coef_(self) -> csr_matrix:
        """Weights of features, a column per label of `classes_`."""
        self._check_attribute("coef_")
        return csr_matrix(self._chain.weights()[:, self._columns()])

    @property
    @of_one_model
    def transitions_(self) -> NDArray[np.float64]:
        """Weights of pairs of labels."""
        self._check_attribute("transitions_")
        columns = self._columns()
        return self._chain.model.transitions()[:, np.concatenate([[0], columns + 1])][:, :, columns]

    @property
    @of_one_model
    def columns_(self) -> tuple[str, ...] | None:
        """Names of the columns of text that a token has; None where tokens are not text."""
        self._check_attribute("columns_")
        encoder = self._learner.encoder
        return encoder.columns if isinstance(encoder, TemplateEncoder) else None

    @of_one_model
    def feature_names(self) -> list[str]:
        """What the rows of `coef_` stand for."""
        check_is_fitted(self, "classes_")
        return self._learner.encoder.names(np.arange(self._chain.model.features))

    # ---- Training ----

    def _fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, certify: bool | str, asked: CheckpointRequest
    ) -> Outcome:
        declare.check(self)
        parameters.certify(certify, self.tol)
        seeds = check_random_state(self.random_state)
        seed = int(seeds.randint(2**31 - 1))
        orders = np.random.RandomState(seeds.randint(2**31 - 1))
        tol, passes = self.tol, self._passes
        self._begin(X, seed, returns=passes > 1 or tol is not None)
        corpus = self._corpus(X, y, sample_weight)
        if isinstance(corpus, HeldCorpus):
            check_several_classes(self._learner.labels.labels)
            _check_weighted_labels(corpus.held)
        checkpoint = self._checkpoint(asked, X, corpus)
        has_dual = self._has_dual and (self._is_larank or passes == 1)
        limits = Limits(
            gap=None if tol is None else float(tol),
            max_iter=math.inf if tol is None else passes,
            time_limit=self.time_limit,
            passes=passes if tol is None else None,
            certify=bool(certify) and has_dual,
            passes_between_checks=1.0,
        )
        outcome = self._train(X, corpus, passes if tol is None else math.inf, orders, has_dual, limits, checkpoint)
        self._check_arrived(2, outcome)
        if corpus.n_tokens is not None:  # a file was read to its end
            check_several_classes(self._learner.labels.labels)
        if self.solver != "perceptron":  # its last weights are much worse than the average of all
            self._learner.begin_stream()
        self._warn_of_costs()
        return outcome

    def _partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, turn: ExitStack) -> Outcome:
        """Until the turn ends, when the model is published, others wait for weights that are trained in place."""
        declare.check(self)
        before = getattr(self, "_learner", None)
        if before is None:
            self._begin(X, int(check_random_state(self.random_state).randint(2**31 - 1)), returns=False)
        parameters.check_unchanged(self._began_with, self._fixed)
        corpus = self._corpus(X, y, sample_weight)
        is_in_place = before is not None and self._is_short(corpus) and turn.enter_context(before.in_place())
        if before is not None and not is_in_place:
            self._learner = self._learner.copy()
        limits = Limits(None, math.inf, self.time_limit, passes=1, certify=False)
        try:
            return self._train(X, corpus, 1, None, self._has_dual, limits)
        except BaseException:
            if before is not None and is_in_place:
                before.recover(self._learner)
            raise

    def _is_short(self, corpus: Corpus) -> bool:
        """Whether to learn from it takes less time than copying the learner would be worth."""
        work = 1 + (self._reprocess if self._is_larank else 0)
        return corpus.n_tokens is not None and corpus.n_tokens * work * _COPIED_PER_LOOK < self._learner.nbytes

    def _begin(self, X: Any, seed: int, *, returns: bool) -> None:
        """A model that has seen nothing."""
        encoder = encoder_for(X, self.templates, self.columns)
        self._learner = self._new_learner(encoder, LabelNumbers(), seed, self._averages, returns=returns)
        self._began_with = self._fixed

    def _new_learner(
        self, encoder: Encoder, labels: LabelNumbers, seed: int, averages: bool, *, returns: bool
    ) -> Learner:
        chain = Chain(self.order, self._inference, self.constraints, self.label_costs)
        if not self._is_larank:
            session = _core.ChainPerceptron(chain.model, rule=str(self.solver), averages=averages)
            return Learner(encoder, labels, chain, session, memory_limit=self.memory_limit)
        larank = _core.ChainLaRank(
            chain.model,
            tau=_TAU,
            n_reprocess=self._reprocess,
            memory_limit=int(self.memory_limit),
            returns=returns,
            seed=seed,
            max_patterns=int(self.max_support or 0),
            averages=averages,
        )
        return Learner(encoder, labels, chain, larank, memory_limit=self.memory_limit)

    def _corpus(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Corpus:
        """What is learnt from. Labels that are new are those of a new learner, so that the old one can come back."""
        self._learner = replace(self._learner, labels=LabelNumbers(self._learner.labels.labels))
        encoder, labels = self._learner.encoder, self._learner.labels
        if isinstance(X, ConllFile):
            _check_file(X, y, sample_weight)
            scheme = self._look_through(X)
            return FileCorpus(X, encoder, labels, float(self.C), scheme, self.memory_limit, self._workers().count > 1)
        began = time.perf_counter()
        sequences = encoder.learn(X)
        encoding_seconds = time.perf_counter() - began
        flat = self._given_labels(X, y, sequences)
        n = len(sequences)
        costs = example_costs(float(self.C), None, np.zeros(n), np.zeros(1), sample_weight, None)
        sequences, places = sequences.without_empty()
        held = LabelledSequences(sequences, labels.of(flat), costs[places], 0, 0, len(labels), places)
        return HeldCorpus(held, encoding_seconds)

    def _look_through(self, file: ConllFile) -> str | None:
        """Look at all labels of a file before training begins; say in which scheme they are to be mended."""
        if self.repair:
            labels_to_mend(file, str(self.constraints)).warn_of_repair()
            return str(self.constraints)
        if self.constraints is not None:
            refuse_wrong_labels(file, self.constraints)
        return None

    def _given_labels(self, X: Any, y: Any, sequences: Sequences) -> list[Any]:
        """The labels of tokens as every method takes them: with `repair` as conlleval reads them, and a warning."""
        tags = flat_labels(X, y, sequences)
        if not self.repair:
            return tags
        wrong = WrongLabels(self.constraints)
        right = wrong.mend(sequences.starts, tags, lambda sequence, position: f"y[{sequence}][{position}]")
        wrong.warn_of_repair()
        return right

    def _checkpoint(self, asked: CheckpointRequest, X: Any, corpus: Corpus) -> CheckpointFile | None:
        """Of a file with all its bytes, or of sequences with the names of their features."""
        if asked.checked().checkpoint is None:
            return None
        if isinstance(corpus, FileCorpus):
            layout = DataPart(repr((X.columns, X.label, X.separator, X.comment)), ())
            return CheckpointFile.asked_for(asked, self, X=file_as_data(X.path), columns=layout)
        held, labels = corpus.held, self._learner.labels.labels
        sequences = held.sequences
        arrays = (sequences.starts, sequences.indptr, sequences.indices, sequences.values)
        counts = f"{len(sequences)} sequences of {sequences.n_tokens} tokens"
        of_tokens = DataPart(f"{counts} with {sequences.n_features} features", (*arrays, self._learner.encoder.state()))
        of_labels = DataPart(f"{counts} with {len(labels)} labels", (held.labels, labels))
        return CheckpointFile.asked_for(asked, self, X=of_tokens, y=of_labels, sample_weight=held.costs)

    def _train(
        self,
        X: Any,
        corpus: Corpus,
        epochs: float,
        orders: np.random.RandomState | None,
        has_dual: bool,
        limits: Limits,
        checkpoint: CheckpointFile | None = None,
    ) -> Outcome:
        work = 1 + (self._reprocess if self._is_larank else 0)
        kind = RoundsToGap if self.tol is not None and self._inference == "exact" else ChainTraining
        training = kind(self._learner, corpus, epochs, orders, self._history, work, has_dual, self._workers())
        what = repr(X) if isinstance(X, ConllFile) else f"{corpus.n_tokens} tokens"
        name = (
            "LaRank" if self._is_larank else {"perceptron": "Perceptron", "passive-aggressive": "PA"}[str(self.solver)]
        )
        name += self._inference.capitalize() + ("" if self.tol is None else "Gap")
        with first_interrupt() as interrupt, progress_for(self.verbose) as progress, training.workers.entered():
            training.check_limits = partial(check_resumes, self.time_limit, interrupt)
            progress.start(f"{name}, {what}")
            try:
                outcome = train(training, limits, progress, checkpoint=checkpoint, interrupt=interrupt)
            finally:
                training.close()
        self._learner.stretches += training.stretches
        self._learner.sequences += training.sequences
        self._check_arrived(1, outcome)
        if hasattr(self, "calibration_"):
            del self.calibration_
        self.classes_ = sorted_labels(self._learner.labels.labels)
        session = self._learner.session
        self.result_ = Result.of(
            outcome,
            solver=name,
            iterations=training.iterations(),
            support_patterns=session.support_patterns,
            support_vectors=session.support_vectors,
            argmax_calls=session.argmax_calls,
            operations=session.operations,
            breakdown={"features": corpus.encoding_seconds, "training": training.seconds},
        )
        self.n_iter_ = math.ceil(self.result_.iterations)
        return outcome

    # ---- Checks ----

    _UNUSED_SWITCHES = ("schedule", "operations", "tau", "forget")

    def _check_together(self) -> None:
        super()._check_together()
        if self.tol is not None:
            self._check_reaches_gap(self.tol)
        if self.max_support is not None and not self._is_larank:
            raise ParameterError(
                "max_support",
                f"must be None with solver={self.solver!r}, which stores no sequences; got {self.max_support!r}",
            )
        if self.label_costs is not None and self.solver == "perceptron":
            raise ParameterError(
                "label_costs",
                f"must be None with solver='perceptron', which only counts wrong labels; got {self.label_costs!r}. Set "
                "solver='larank' or 'passive-aggressive'",
            )
        if self.repair and not isinstance(self.constraints, str):
            raise ParameterError(
                "repair",
                "must be False unless constraints is 'BIO' or 'BILOU', because other labels cannot be read as "
                f"conlleval reads tags; got repair={self.repair!r} and constraints={self.constraints!r}",
            )

    def _check_reaches_gap(self, tol: float) -> None:
        """Raise a ParameterError if training cannot reach a duality gap with the other parameters."""
        if not self._is_larank:
            obstacle = f"solver={self.solver!r}, which does not train to a duality gap"
        elif self._history == "predicted":
            obstacle = f"inference={self.inference!r}, which does not train to a duality gap"
        elif self.average not in ("auto", False):
            obstacle = f"average={self.average!r}, because only the last weights reach the gap"
        elif self.max_support is not None:
            obstacle = f"max_support={self.max_support!r}, because the gap needs all support patterns"
        else:
            return
        raise ParameterError("tol", f"must be None with {obstacle}; got {tol!r}. Set max_iter instead")

    def _why_no_stream(self) -> str:
        if self.tol is not None:
            return f"with tol={self.tol!r}, because it makes one pass over the sequences it is given; tol must be None"
        return super()._why_no_stream()

    def _check_arrived(self, least: int, outcome: Outcome) -> None:
        """Raise if a limit has ended training before any sequence, or before sequences with `least` labels."""
        # The thread that reads a file knows labels of sequences that training has not received so far.
        labels = self._learner.labels.labels if self._learner.stretches else []
        check_arrived(labels, least, outcome.status, self.time_limit)

    def _check_attribute(self, name: str) -> None:
        if not hasattr(self, "_learner"):
            raise AttributeError(f"{name} is there once the tagger is fitted")

    def _warn_of_costs(self) -> None:
        named = {label for pair in self.label_costs or () for label in pair}
        unknown = sorted(map(repr, named - set(self._learner.labels.labels)))
        if unknown:
            warnings.warn(f"label_costs names labels that y does not hold: {', '.join(unknown)}", stacklevel=4)

    def _warn_if_early(self, outcome: Outcome) -> None:
        warn_if_early(outcome, self.result_, max_iter=self._passes, time_limit=self.time_limit, stacklevel=3)

    # ---- What parameters mean ----

    @property
    def _is_larank(self) -> bool:
        return isinstance(self.solver, LaRank) or self.solver == "larank"

    @property
    def _inference(self) -> str:
        """The name of the inference."""
        return "greedy" if isinstance(self.inference, Greedy) else self.inference

    @property
    def _history(self) -> str:
        """The labels before a token in greedy training."""
        return self.inference.history if isinstance(self.inference, Greedy) else "true"

    @property
    def _passes(self) -> int:
        """The number of passes, or the largest number with `tol`."""
        if self.max_iter is None:
            return 1 if self.tol is None else _MOST_PASSES
        return int(self.max_iter)

    @property
    def _reprocess(self) -> int:
        n_reprocess = self.solver.n_reprocess if isinstance(self.solver, LaRank) else None
        return _N_REPROCESS[self._inference] if n_reprocess is None else int(n_reprocess)

    @property
    def _has_dual(self) -> bool:
        """Whether the primal objective of the model and a dual one are known."""
        is_bound = self._is_larank or not self._averages
        return self.solver != "perceptron" and self._history == "true" and is_bound

    @property
    def _averages(self) -> bool:
        """Whether the model is an average. The last weights are taken if a gap is to be reached."""
        return self._is_larank and self.tol is None if self.average == "auto" else bool(self.average)

    @property
    def _fixed(self) -> dict[str, Any]:
        """The parameters that cannot change during a stream, because the session is made with them."""
        solver = LaRank(n_reprocess=self._reprocess) if self._is_larank else self.solver
        fixed = {name: getattr(self, name) for name in _FIXED_IN_A_STREAM}
        return {"inference": self._inference, "solver": solver, **fixed}

    # ---- What was learnt ----

    @property
    def _chain(self) -> Chain:
        return self._learner.model()

    def _workers(self) -> Workers:
        return Workers(blas_threads() if self.n_jobs is None else self.n_jobs)

    def _names(self) -> NDArray[Any]:
        """The labels by their numbers."""
        names = np.empty(len(self._learner.labels), dtype=object)
        names[:] = self._learner.labels.labels
        return names if self.classes_.dtype.kind in "OUS" else names.astype(self.classes_.dtype)

    def _columns(self) -> NDArray[np.intp]:
        """The columns of the compiled model in the order of `classes_`."""
        return self._learner.labels.known(self.classes_.tolist()).astype(np.intp)

    def _encoded(self, X: Any) -> Sequences:
        """Features that the model has weights for."""
        return self._learner.encoder.encode(X).up_to(self._chain.model.features)

    def _predicted(self, sequences: Sequences) -> NDArray[Any]:
        """The label of each token."""
        return self._names()[self._chain.predict(sequences, self._workers())]

    def _file_score(self, file: ConllFile) -> float:
        workers, labels = self._workers(), self._learner.labels
        words, wrong = _core.Dictionary(), WrongLabels(self.constraints)
        number = np.empty(0, np.int32)  # of each word that is a label in the file
        right = tokens = 0
        for block in file.blocks(_PREDICTION_TOKENS, words):
            if self.repair:
                names = np.array(words.words(), dtype=object)[block.labels].tolist()
                true = labels.known(wrong.mend(block.starts, names, named_by_line(file, block)))
            else:
                if len(words) > len(number):
                    number = labels.known(words.words())
                true = number[block.labels]
            found = self._chain.predict(self._encoded(block), workers)
            right += int(np.count_nonzero(found == true))
            tokens += len(found)
        wrong.warn_of_repair()
        return right / tokens

    # ---- Models as arrays and plain values ----

    @property
    @of_one_model
    def _state(self) -> dict[str, Any]:
        self._check_attribute("_state")
        return self._learner.state()

    @_state.setter
    def _state(self, state: Mapping[str, Any]) -> None:
        kind, features = state["encoder"]
        encoder, n_weights = ENCODERS[kind].from_state(features), len(state["tokens"][2]) - 1
        if encoder.n_features < n_weights or (kind == "ArrayEncoder" and encoder.n_features != n_weights):
            raise ValueError(f"there must be weights for {encoder.n_features} features, got some for {n_weights}")
        self._learner = self._restored(state, encoder)
        self._learner.model()  # damage of the average is found here, and not in the first prediction
        self._began_with = self._fixed

    def _restored(self, state: Mapping[str, Any], encoder: Encoder) -> Learner:
        session = state["session"]
        averages = "early" in session if self._is_larank else self._averages
        labels, seed = LabelNumbers(state["labels"]), int(session["seed"])
        learner = self._new_learner(encoder, labels, seed, averages, returns=False)
        learner.restore(state)
        learner.stretches = int(state["stretches"])
        return learner

    def __getstate__(self) -> dict[str, Any]:
        """Everything as plain arrays; the compiled objects are rebuilt from them."""
        model = one_model(self)
        state: dict[str, Any] = {**super(SequenceTagger, model).__getstate__()}
        for name in ("_began_with", "_pin"):
            state.pop(name, None)
        return {**state, "_state": model._state} if state.pop("_learner", None) is not None else state

    def _for_prediction(self) -> Self:
        """A model that predicts alike, without what training needs to go on: a fraction to send elsewhere."""
        check_is_fitted(self, "classes_")
        model = copied(one_model(self))
        learner, chain = model._learner, model._learner.model()
        session: dict[str, Any] = {"linear": 0.0, "seed": 0}
        empty = model._new_learner(learner.encoder, LabelNumbers(), 0, False, returns=False).session
        if isinstance(empty, _core.ChainLaRank):
            session["patterns"] = empty.state()
        weights = {"tokens": chain.model.tokens(), "transitions": chain.model.transitions()}
        state = {**weights, "labels": learner.labels.labels, "stretches": 0, "session": session}
        model._learner = model._restored(state, learner.encoder)
        model.__dict__.pop("_pin", None)
        return model

    def _hold(self) -> bool:
        """Keep others from training the weights of this copy in place."""
        if "_learner" not in vars(self) or "_pin" in vars(self):
            return True
        pin = self._learner.pin()
        if pin is not None:
            self._pin = pin
        return pin is not None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the compiled objects."""
        state = dict(state)
        kept = state.pop("_state", None)
        super().__setstate__(state)
        if kept is not None:
            self._state = kept


def _split(labels: NDArray[Any], starts: NDArray[np.int64]) -> NDArray[np.object_]:
    """An array of lists: assigned at once, lists of one length would be rows of a table."""
    flat = labels.tolist()
    sequences = np.empty(len(starts) - 1, dtype=object)
    for i, (begin, end) in enumerate(pairwise(starts.tolist())):
        sequences[i] = flat[begin:end]
    return sequences


def _held(file: ConllFile) -> tuple[list[list[Any]], list[list[str]] | None]:
    """The sequences of a file and their labels, in memory."""
    return read_conll(file.path, columns=file.columns, label=file.label, separator=file.separator, comment=file.comment)


def _check_weighted_labels(held: LabelledSequences) -> None:
    """Raise if weights of zero leave a single label."""
    weighted = np.unique(held.labels[np.repeat(held.costs > 0, held.sequences.lengths)])
    if len(weighted) < 2:
        raise ValueError("sample_weight must leave at least two labels in sequences with a weight above zero")


def _check_file(file: ConllFile, y: Any, sample_weight: ArrayLike | None) -> None:
    if y is not None:
        raise ValueError("y must be None for a ConllFile: its labels are in the file")
    if sample_weight is not None:
        raise ValueError("sample_weight must be None for a ConllFile; read_conll gives sequences that can be weighted")
    if file.label is None:
        raise ValueError(f"{file!r} must have a column of labels; it was opened with label=None")
