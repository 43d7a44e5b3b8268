"""`SequenceTagger`: labels for the tokens of sequences, by LaRankExact and LaRankGreedy, [thesis] section 5.3."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from larank import _core, parameters
from larank.blocks.workers import Workers, blas_threads
from larank.data.columns import ConllFile
from larank.data.models import persistable
from larank.sequence.chain import (
    Chain,
    ChainTraining,
    argmax_calls,
    chain_block,
    operations,
    restore_session,
    session_state,
)
from larank.sequence.constraints import Constraints, check_constraints
from larank.sequence.corpora import Corpus, FileCorpus, HeldCorpus, LabelNumbers
from larank.sequence.explaining import Explanation, WeightOf, explained
from larank.sequence.features import ArrayEncoder, Encoder, NameEncoder, TemplateEncoder, encoder_for, is_ragged
from larank.sequence.sequences import Sequences
from larank.training import Limits, Outcome, train, unchanged_on_failure, warn_if_early
from larank.training.progress import progress_for
from larank.training.result import Result

__all__ = ["RankedPath", "SequenceTagger"]

_ENCODERS: dict[str, type[Encoder]] = {kind.__name__: kind for kind in (ArrayEncoder, NameEncoder, TemplateEncoder)}
_N_REPROCESS = {"exact": 5, "greedy": 1}  # [thesis] table 5.4
_TAU = 1e-10  # steps on smaller differences of derivatives are left alone, [thesis] section 5.1.5
_PREDICTION_TOKENS = 50_000


class RankedPath(NamedTuple):
    """One of the n best label sequences: its labels, its score, and by how much it beats the next one."""

    labels: list[Any]
    score: float
    margin: float


@persistable("classes_", "n_iter_", "result_", "_state")
class SequenceTagger(BaseEstimator):  # type: ignore[misc]
    """Labels for the tokens of sequences: a large-margin tagger that learns in one pass and keeps learning.

    It minimises ``1/2 |w|^2 + C sum_i max_y (Delta(y_i, y) - <w, Phi(x_i, y_i) - Phi(x_i, y)>)``, where a token's
    features and the pairs of its label with each of the `order` labels before it have weights in ``w``. For exact
    inference, i goes over sequences and ``Delta`` counts wrong labels. For greedy inference, i goes over tokens, each
    after its true history.

    Parameters
    ----------
    inference : {"exact", "greedy"}, default="exact"
        "exact": the sequence of labels with the highest score of all (Viterbi); time grows with labels^(order + 1).
        "greedy": the best label for one token after the other, those before it being fixed; any order.
    order : int, default=1
        Labels before a token that its label depends on, at most 255. Sequences may be shorter.
    C : float, default=0.1
        The cost of a loss of one: larger values fit the training data more closely.
    solver : {"larank", "perceptron", "passive-aggressive"}, default="larank"
        The perceptron and the passive-aggressive rule look at each example once per epoch and keep nothing of it.
    n_reprocess : int, optional
        How often LaRank returns to support patterns after each new example: one PROCESSOLD and ten OPTIMIZE each time.
        By default 5 for exact and 1 for greedy inference.
    epochs : int, default=1
        Passes over the data.
    stop : {"epochs", "gap"}, default="epochs"
        "gap": passes go on until the duality gap is at most `tol` times the primal objective, or `C` if there is no
        `tol`.
    tol : float, optional
        See `stop`.
    max_iter : int, default=1000
        Passes after which `stop="gap"` gives up.
    time_limit : float, optional
        Seconds after which training ends with a valid model.
    templates : sequence of str, optional
        Which features to make of tokens that are text, see `larank.sequence.features`. By default `WORDS` for one
        column and `CHUNKING` for the columns word and pos.
    columns : sequence of str, optional
        Names of the columns of a token for the templates. By default word, pos, col2, ...
    constraints : {"BIO", "BILOU"}, callable or None, default=None
        Which label may follow which, in training and in prediction. A function is asked ``allowed(previous, label)``
        with None for the beginning and the end.
    label_costs : mapping, optional
        What it costs to predict ``b`` for a token of label ``a``: ``{(a, b): cost}``; pairs not in it cost 1.
    history : {"true", "predicted"}, default="true"
        The labels before a token in greedy training: the true ones, or what the model predicts at that time. With
        predicted ones the problem changes on the way, so there is no certificate.
    average : bool, default=False
        Whether the perceptron and the passive-aggressive rule predict with the average of all their weights.
    shuffle : bool, default=True
        Whether `fit` shuffles the sequences in each epoch. Those of a file are shuffled within blocks of some 50 000
        tokens.
    certify : bool, default=True
        Whether `fit` computes the duality gap from scratch at the end.
    memory_limit : float, default=2e9
        Bytes of support patterns that LaRank returns to, and of encoded text of a file kept for the next pass. When
        patterns take more, random ones are let go: their coefficients stay as they are. The weights come on top.
    random_state : int, RandomState or None, default=None
        Of the order of the sequences and of the patterns returned to. The same integer gives the same model.
    n_jobs : int, optional
        Threads for prediction, the certificate and reading ahead. By default as many as BLAS would use.
    verbose : int, default=0
        1 shows a progress bar or, where standard error is no terminal, a line every few seconds.

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
    [['DET', 'NOUN', 'VERB']]
    """

    _FIXED_IN_A_STREAM: ClassVar[tuple[str, ...]] = (
        "inference",
        "order",
        "solver",
        "templates",
        "columns",
        "constraints",
        "label_costs",
        "average",
    )

    _running: _Running
    _encoder: Encoder
    _labels: LabelNumbers

    def __init__(
        self,
        inference: str = "exact",
        *,
        order: int = 1,
        C: float = 0.1,
        solver: str = "larank",
        n_reprocess: int | None = None,
        epochs: int = 1,
        stop: str = "epochs",
        tol: float | None = None,
        max_iter: int = 1000,
        time_limit: float | None = None,
        templates: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        constraints: Constraints = None,
        label_costs: Mapping[tuple[Any, Any], float] | None = None,
        history: str = "true",
        average: bool = False,
        shuffle: bool = True,
        certify: bool = True,
        memory_limit: float = 2e9,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.inference = inference
        self.order = order
        self.C = C
        self.solver = solver
        self.n_reprocess = n_reprocess
        self.epochs = epochs
        self.stop = stop
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.templates = templates
        self.columns = columns
        self.constraints = constraints
        self.label_costs = label_costs
        self.history = history
        self.average = average
        self.shuffle = shuffle
        self.certify = certify
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
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

        Returns
        -------
        SequenceTagger
            Itself, fitted. A `TrainingWarning` says when training ended early; the model is valid all the same.
        """
        with unchanged_on_failure(self):
            outcome = self._fit(X, y, sample_weight)
        self._warn_if_early(outcome)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go on training with new sequences, in the order in which they come.

        Labels and features that are new take part from then on. There is no certificate from scratch: `result_` holds
        an estimate. `epochs`, `shuffle` and `certify` act in `fit` only. If something is wrong with a line of a file,
        the model stays as it was, for which a copy is kept while a file is learnt.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        SequenceTagger
            Itself.
        """
        with unchanged_on_failure(self):
            outcome = self._partial_fit(X, y, sample_weight)
        self._warn_if_early(outcome)
        return self

    def predict(self, X: Any) -> Any:
        """The labels of each token.

        Parameters
        ----------
        X : sequence of sequences of tokens, or (array, lengths), or ConllFile
            As for `fit`; labels in a file are not looked at.

        Returns
        -------
        list of lists of labels, or ndarray
            An array with one label per row for ``(array, lengths)``.
        """
        check_is_fitted(self, "classes_")
        if isinstance(X, ConllFile):
            return [path for block in self.predict_blocks(X) for path in block]
        sequences = self._encoded(X)
        labels = self._names()[self._chain.predict(sequences, self._workers())]
        return labels if is_ragged(X) else _split(labels, sequences.starts)

    def predict_blocks(self, file: ConllFile) -> Iterator[list[list[Any]]]:
        """The labels of a file of any size, some thousand sentences at a time.

        Parameters
        ----------
        file : ConllFile
            Labels in it are not looked at.

        Yields
        ------
        list of lists of labels
            Of the next sentences.
        """
        check_is_fitted(self, "classes_")
        workers = self._workers()
        for block in file.blocks(_PREDICTION_TOKENS):
            sequences = self._encoded(block)
            yield _split(self._names()[self._chain.predict(sequences, workers)], sequences.starts)

    def score(self, X: Any, y: Any = None) -> float:
        """The share of tokens whose label is predicted.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        float
            Between 0 and 1. For entities see `larank.sequence.entities.entity_report`.
        """
        check_is_fitted(self, "classes_")
        if isinstance(X, ConllFile):
            _check_file(X, y, None)
            return self._file_score(X)
        sequences = self._encoded(X)
        if not len(sequences):
            raise ValueError("X is empty; a score needs at least one sequence")
        known = self._labels.known(_flat_labels(X, y, sequences))
        return float(np.mean(self._chain.predict(sequences, self._workers()) == known))

    def predict_nbest(self, X: Any, n: int = 5) -> list[list[RankedPath]]:
        """The n best label sequences of each sequence, best first.

        Parameters
        ----------
        X : sequence of sequences of tokens, or (array, lengths)
            As for `fit`.
        n : int, default=5
            How many; there are fewer where there are not so many sequences of labels.

        Returns
        -------
        list of lists of RankedPath
            With their scores, and by how much each beats the next; the last of all beats nothing by infinity.
        """
        check_is_fitted(self, "classes_")
        parameters.whole_number("n", n, at_least=1)
        if self._chain.inference != "exact":
            raise ValueError("predict_nbest needs inference='exact': greedy inference looks at one path only")
        sequences = self._encoded(X)
        block = chain_block(sequences)
        self._chain.model.prepare(block.longest)
        names = self._names()
        found = []
        for i in range(len(sequences)):
            paths = self._chain.model.best_paths(block, i, n + 1)
            if not paths:
                raise ValueError(f"constraints={self.constraints!r} must allow some labels for X[{i}], got none")
            scores = [score for _, score in paths] + [-math.inf]
            found.append(
                [
                    RankedPath(names[path].tolist(), score, score - scores[k + 1])
                    for k, (path, score) in enumerate(paths[:n])
                ]
            )
        return found

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
        sequences = self._encoded(X)
        return explained(self._chain, self._encoder, sequences, self._labels.labels, list(sentence), top)

    def weights(self, label: Any, top: int = 20) -> list[WeightOf]:
        """The features and transitions that speak most for and against a label.

        Parameters
        ----------
        label : object
            One of `classes_`.
        top : int, default=20
            How many, those with the largest absolute weights first.

        Returns
        -------
        list of WeightOf
            Pairs of name and weight.
        """
        check_is_fitted(self, "classes_")
        parameters.whole_number("top", top, at_least=1)
        column = self._labels.known([label])[0]
        if column < 0:
            raise ValueError(f"label must be one of {self.classes_.tolist()!r}, got {label!r}")
        weights = self._chain.weights().getcol(column).toarray().ravel()
        chosen = np.argsort(-np.abs(weights), kind="stable")[:top]
        chosen = chosen[weights[chosen] != 0]
        features = [
            WeightOf(name, float(w)) for name, w in zip(self._encoder.names(chosen), weights[chosen], strict=True)
        ]
        before = ["nothing", *map(str, self._labels.labels)]
        transitions = [
            WeightOf(f"{before[p]} {lag + 1} before", float(w))
            for lag, table in enumerate(self._chain.model.transitions())
            for p, w in enumerate(table[:, column])
            if w
        ]
        return sorted(features + transitions, key=lambda found: -abs(found.weight))[:top]

    @property
    def coef_(self) -> csr_matrix:
        """Weights of features, a column per label of `classes_`."""
        if not hasattr(self, "_running"):
            raise AttributeError("coef_ is there once the tagger is fitted")
        return csr_matrix(self._chain.weights()[:, self._columns()])

    @property
    def transitions_(self) -> NDArray[np.float64]:
        """Weights of pairs of labels."""
        if not hasattr(self, "_running"):
            raise AttributeError("transitions_ is there once the tagger is fitted")
        columns = self._columns()
        return self._chain.model.transitions()[:, np.concatenate([[0], columns + 1])][:, :, columns]

    @property
    def columns_(self) -> tuple[str, ...] | None:
        """Names of the columns of text that a token has; None where tokens are not text."""
        if not hasattr(self, "_running"):
            raise AttributeError("columns_ is there once the tagger is fitted")
        return self._encoder.columns if isinstance(self._encoder, TemplateEncoder) else None

    def feature_names(self) -> list[str]:
        """What the rows of `coef_` stand for."""
        check_is_fitted(self, "classes_")
        return self._encoder.names(np.arange(self._encoder.n_features))

    def __getstate__(self) -> dict[str, Any]:
        """Everything as plain arrays; the compiled objects are rebuilt from them."""
        state: dict[str, Any] = {**super().__getstate__()}
        for name in ("_running", "_encoder", "_labels", "_began_with"):
            state.pop(name, None)
        return {**state, "_state": self._state} if hasattr(self, "_running") else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the compiled objects."""
        state = dict(state)
        kept = state.pop("_state", None)
        super().__setstate__(state)
        if kept is not None:
            self._state = kept

    # ---- Training ----

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Outcome:
        self._check_parameters()
        seeds = check_random_state(self.random_state)
        seed = int(seeds.randint(2**31 - 1))
        orders = np.random.RandomState(seeds.randint(2**31 - 1)) if self.shuffle else None
        self._begin(X, seed, returns=self.epochs > 1 or self.stop == "gap")
        corpus = self._corpus(X, y, sample_weight)
        is_gap = self.stop == "gap"
        has_dual = self._has_dual and (self.solver == "larank" or self.epochs == 1)
        limits = Limits(
            gap=self.tol if is_gap else None,
            max_iter=self.max_iter if is_gap else math.inf,
            time_limit=self.time_limit,
            absolute_gap=self.C if is_gap and self.tol is None else None,
            passes=None if is_gap else self.epochs,
            certify=self.certify and has_dual,
            passes_between_checks=1.0,
        )
        training = self._training(corpus, math.inf if is_gap else self.epochs, orders, has_dual)
        outcome = self._train(training, limits, X)
        self._warn_of_costs()
        return outcome

    def _partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Outcome:
        self._check_parameters()
        if self.stop == "gap":
            raise ValueError("partial_fit makes one pass over what it is given; stop must be 'epochs', got 'gap'")
        if not hasattr(self, "_running"):
            self._begin(X, int(check_random_state(self.random_state).randint(2**31 - 1)), returns=False)
        self._check_unchanged()
        before = self._state if isinstance(X, ConllFile) and hasattr(self, "classes_") else None
        corpus = self._corpus(X, y, sample_weight)
        training = self._training(corpus, 1, None, self._has_dual)
        limits = Limits(None, math.inf, self.time_limit, passes=1, certify=False)
        try:
            return self._train(training, limits, X)
        except BaseException:
            if before is not None:  # what came before a malformed line was learnt
                self._running.become(self._restored(before))
            raise

    def _begin(self, X: Any, seed: int, *, returns: bool) -> None:
        """A model that has seen nothing."""
        self._encoder = encoder_for(X, self.templates, self.columns)
        self._labels = LabelNumbers()
        chain = Chain(self.order, self.inference, self.constraints, self.label_costs)
        self._running = _Running(chain, self._session(chain, seed, returns=returns))
        self._began_with = {name: getattr(self, name) for name in self._FIXED_IN_A_STREAM}

    def _session(self, chain: Chain, seed: int, *, returns: bool) -> _core.ChainLaRank | _core.ChainPerceptron:
        if self.solver != "larank":
            return _core.ChainPerceptron(chain.model, rule=self.solver, averages=bool(self.average))
        return _core.ChainLaRank(
            chain.model,
            tau=_TAU,
            n_reprocess=self._reprocess,
            memory_limit=int(self.memory_limit),
            returns=returns,
            seed=seed,
        )

    def _corpus(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Corpus:
        workers = self._workers()
        cost = float(self.C)
        if isinstance(X, ConllFile):
            _check_file(X, y, sample_weight)
            reads_ahead = workers.count > 1
            self._labels = LabelNumbers(self._labels.labels)
            return FileCorpus(X, self._encoder, self._labels, cost, self.memory_limit, reads_ahead)
        began = time.perf_counter()
        sequences = self._encoder.learn(X)
        encoding_seconds = time.perf_counter() - began
        flat = _flat_labels(X, y, sequences)
        weights = _checked_weights(sample_weight, len(sequences))
        labels = LabelNumbers(self._labels.labels)
        numbers = labels.of(flat)
        self._labels = labels
        return HeldCorpus(sequences, numbers, cost * weights, len(labels), encoding_seconds)

    def _training(
        self, corpus: Corpus, epochs: float, orders: np.random.RandomState | None, has_dual: bool
    ) -> ChainTraining:
        session = self._running.session
        return ChainTraining(
            self._running.chain,
            session,
            corpus,
            self._labels,
            epochs=epochs,
            orders=orders,
            own_history=self.history == "predicted",
            work_per_token=1 + (self._reprocess if self.solver == "larank" else 0),
            has_dual=has_dual,
            ids_from=self._running.stretches,
            workers=self._workers(),
        )

    def _train(self, training: ChainTraining, limits: Limits, X: Any) -> Outcome:
        what = repr(X) if isinstance(X, ConllFile) else f"{training.corpus.n_tokens} tokens"
        with progress_for(self.verbose) as progress, training.workers.entered():
            progress.start(f"{self._solver_name()}, {what}")
            try:
                outcome = train(training, limits, progress)
            finally:
                training.close()
        self._running.stretches += training.stretches
        self._running.average = None
        self._keep_model(training, outcome)
        return outcome

    @property
    def _chain(self) -> Chain:
        """The model that predicts: the one that is trained, or the average of its weights."""
        running = self._running
        if isinstance(running.session, _core.ChainPerceptron) and self.average:
            if running.average is None:
                running.average = self._chain_with(*running.session.average())
            return running.average
        return running.chain

    def _chain_with(self, tokens: Any, transitions: Any) -> Chain:
        chain = Chain(self.order, self.inference, self.constraints, self.label_costs)
        values, columns, starts = tokens
        chain.model.set_weights(values, columns, starts, np.ascontiguousarray(transitions))
        chain.allow(self._labels.labels)
        return chain

    def _keep_model(self, training: ChainTraining, outcome: Outcome) -> None:
        session = self._running.session
        self.classes_ = _sorted(self._labels.labels)
        at = outcome.objectives
        self.result_ = Result(
            solver=self._solver_name(),
            status=outcome.status,
            primal=at.primal,
            dual=at.dual,
            violation=at.violation,
            iterations=training.iterations(),
            seconds=outcome.seconds,
            support_patterns=getattr(session, "support_patterns", 0),
            support_vectors=getattr(session, "support_vectors", 0),
            argmax_calls=argmax_calls(session),
            operations=operations(session),
            history=outcome.history,
            exact=outcome.exact,
            breakdown={
                "features": training.corpus.encoding_seconds,
                "training": training.seconds,
                "certificate": outcome.certificate_seconds,
            },
        )
        self.n_iter_ = math.ceil(self.result_.iterations)

    # ---- Checks ----

    def _check_parameters(self) -> None:
        parameters.check(self)
        check_constraints(self.constraints)
        _check_label_costs(self.label_costs)

    def _check_unchanged(self) -> None:
        """The session of a stream cannot change some parameters on the way."""
        for name, before in self._began_with.items():
            if getattr(self, name) != before:
                raise ValueError(
                    f"{name} must stay as it was in the calls before, {before!r}; got {getattr(self, name)!r}"
                )

    # ---- Small things ----

    @property
    def _reprocess(self) -> int:
        return _N_REPROCESS[self.inference] if self.n_reprocess is None else int(self.n_reprocess)

    @property
    def _has_dual(self) -> bool:
        return self.solver != "perceptron" and self.history == "true" and not self.average

    def _solver_name(self) -> str:
        names = {"larank": "LaRank", "perceptron": "Perceptron", "passive-aggressive": "PA"}
        return names[self.solver] + self.inference.capitalize() + ("Gap" if self.stop == "gap" else "")

    def _workers(self) -> Workers:
        return Workers(blas_threads() if self.n_jobs is None else self.n_jobs)

    def _names(self) -> NDArray[Any]:
        names = np.empty(len(self._labels), dtype=object)
        names[:] = self._labels.labels
        return (
            names
            if self.classes_.dtype == object or self.classes_.dtype.kind in "US"
            else names.astype(self.classes_.dtype)
        )

    def _columns(self) -> NDArray[np.intp]:
        """The columns of the compiled model in the order of `classes_`."""
        return self._labels.known(self.classes_.tolist()).astype(np.intp)

    def _encoded(self, X: Any) -> Sequences:
        """Features that the model has weights for."""
        sequences = self._encoder.encode(X)
        # A call of partial_fit that failed may have left features behind that have none.
        self._chain.model.grow(self._encoder.n_features, self._chain.model.labels)
        return sequences

    def _file_score(self, file: ConllFile) -> float:
        workers = self._workers()
        words = _core.Dictionary()
        right = tokens = 0
        for block in file.blocks(_PREDICTION_TOKENS, words):
            number = self._labels.known(words.words())
            found = self._chain.predict(self._encoded(block), workers)
            right += int(np.count_nonzero(found == number[block.labels]))
            tokens += len(found)
        return right / tokens

    def _warn_of_costs(self) -> None:
        named = {label for pair in self.label_costs or () for label in pair}
        unknown = sorted(map(repr, named - set(self._labels.labels)))
        if unknown:
            warnings.warn(f"label_costs names labels that y does not hold: {', '.join(unknown)}", stacklevel=4)

    def _warn_if_early(self, outcome: Outcome) -> None:
        warn_if_early(outcome, self.result_, max_iter=self.max_iter, time_limit=self.time_limit, stacklevel=3)

    @property
    def _state(self) -> dict[str, Any]:
        """All that training has made, as arrays and plain values."""
        if not hasattr(self, "_running"):
            raise AttributeError("_state is there once the tagger is fitted")
        running = self._running
        return {
            "encoder": (type(self._encoder).__name__, self._encoder.state()),
            "labels": list(self._labels.labels),
            "tokens": running.chain.model.tokens(),
            "transitions": running.chain.model.transitions(),
            "stretches": running.stretches,
            "session": session_state(running.session),
        }

    @_state.setter
    def _state(self, state: Mapping[str, Any]) -> None:
        kind, features = state["encoder"]
        self._encoder = _ENCODERS[kind].from_state(features)
        self._running = self._restored(state)
        self._began_with = {name: getattr(self, name) for name in self._FIXED_IN_A_STREAM}

    def _restored(self, state: Mapping[str, Any]) -> _Running:
        """The labels of a state, and the model and session it was made from."""
        self._labels = LabelNumbers(state["labels"])
        chain = self._chain_with(state["tokens"], state["transitions"])
        kept = state["session"]
        session = self._session(chain, int(kept["seed"]), returns=False)
        restore_session(session, chain.model, kept)
        return _Running(chain, session, int(state["stretches"]))


class _Running:
    """A model that is being trained, its session, how many stretches it has seen, and perhaps its average."""

    def __init__(self, chain: Chain, session: _core.ChainLaRank | _core.ChainPerceptron, stretches: int = 0) -> None:
        self.chain, self.session, self.stretches = chain, session, stretches
        self.average: Chain | None = None

    def become(self, other: _Running) -> None:
        """Take over all that another one is."""
        self.__dict__.update(other.__dict__)


def _split(labels: NDArray[Any], starts: NDArray[np.int64]) -> list[list[Any]]:
    flat, cuts = labels.tolist(), starts.tolist()
    return [flat[begin:end] for begin, end in pairwise(cuts)]


def _flat_labels(X: Any, y: Any, sequences: Sequences) -> list[Any]:
    """One label per token, or an error that says which sequence has more or fewer."""
    if y is None:
        raise ValueError("y must hold the labels of X; only a ConllFile has its labels in it")
    if is_ragged(X) and not _is_nested(y):
        flat = np.asarray(y)
        if flat.shape != (sequences.n_tokens,):
            raise ValueError(
                f"y must hold one label per row of X, {sequences.n_tokens}; got an array of shape {flat.shape}"
            )
        return _checked_labels(flat.tolist(), None)
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise TypeError(f"y must be a sequence of label sequences, got {type(y).__name__}")
    if len(y) != len(sequences):
        raise ValueError(f"y must hold one label sequence per sequence of X, {len(sequences)}; got {len(y)}")
    flat_labels: list[Any] = []
    for i, (length, labels) in enumerate(zip(sequences.lengths.tolist(), y, strict=True)):
        if isinstance(labels, str) or not hasattr(labels, "__len__"):
            raise TypeError(f"y[{i}] must be a sequence of labels, one per token; got {labels!r}")
        if len(labels) != length:
            raise ValueError(f"y[{i}] must have one label per token of X[{i}], {length}; got {len(labels)}")
        flat_labels.extend(labels.tolist() if hasattr(labels, "tolist") else labels)
    return _checked_labels(flat_labels, sequences.starts)


def _is_nested(y: Any) -> bool:
    return isinstance(y, list | tuple) and len(y) > 0 and not isinstance(y[0], str) and hasattr(y[0], "__len__")


def _checked_labels(labels: list[Any], starts: NDArray[np.int64] | None) -> list[Any]:
    """Labels as they are, or an error that says which one cannot be one; `starts` of sequences if y has them too."""
    try:
        is_fine = not any(map(_is_missing, set(labels)))
    except TypeError:
        is_fine = False
    if is_fine:
        return labels
    at, label = next((at, label) for at, label in enumerate(labels) if not _is_hashable(label) or _is_missing(label))
    i = -1 if starts is None else int(np.searchsorted(starts, at, side="right")) - 1
    place = f"y[{at}]" if starts is None else f"y[{i}][{at - starts[i]}]"
    if not _is_hashable(label):
        raise TypeError(f"{place} is {label!r}; a label must be hashable, such as a str or an int")
    raise ValueError(f"y must not hold {label!r}, but {place} is: every token needs a label")


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and math.isnan(label))


def _is_hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _sorted(labels: list[Any]) -> NDArray[Any]:
    kinds = {str if isinstance(label, str) else (Real if isinstance(label, Real) else type(label)) for label in labels}
    if len(kinds) > 1:
        raise ValueError(f"y must hold labels of one type, got {', '.join(sorted(kind.__name__ for kind in kinds))}")
    found = np.array(sorted(labels))
    if found.ndim == 1 and found.tolist() == sorted(labels):
        return found
    objects = np.empty(len(labels), dtype=object)  # tuples would be rows, and zeros at the end of text be cut off
    objects[:] = sorted(labels)
    return objects


def _checked_weights(sample_weight: ArrayLike | None, count: int) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(count)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight must have one weight per sequence, {count}; got shape {weights.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ValueError(
            f"sample_weight must hold finite numbers >= 0, but sample_weight[{wrong[0]}] is {weights[wrong[0]]}"
        )
    if not weights.any():
        raise ValueError("sample_weight must hold a weight above zero, got none")
    return weights


def _check_file(file: ConllFile, y: Any, sample_weight: ArrayLike | None) -> None:
    if y is not None:
        raise ValueError("y must be None for a ConllFile: its labels are in the file")
    if sample_weight is not None:
        raise ValueError("sample_weight must be None for a ConllFile; read_conll gives sequences that can be weighted")
    if file.label is None:
        raise ValueError(f"{file!r} must have a column of labels; it was opened with label=None")


def _check_label_costs(costs: Mapping[tuple[Any, Any], float] | None) -> None:
    if costs is None:
        return
    if not isinstance(costs, Mapping):
        raise ValueError(f"label_costs must map (true label, predicted label) to a cost, got {costs!r}")
    for pair, cost in costs.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"label_costs must have pairs (true label, predicted label) as keys, got {pair!r}")
        parameters.positive(f"label_costs[{pair!r}]", cost, zero=True)
        if pair[0] == pair[1] and cost != 0:
            raise ValueError(f"label_costs must be 0 for a label in its own place, got {cost!r} for {pair!r}")
