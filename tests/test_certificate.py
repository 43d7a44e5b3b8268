"""The rule of docs/certificate.md, for every estimator with an objective: scales from 1e-8 to 1e8, costs to 1e8.

Each problem is fitted, and its optimum is bounded by a general solver in float64. The gate has 200 problems, the
profile "nightly" of hypothesis 2 000: `pytest --hypothesis-profile=nightly tests/test_certificate.py`.
"""

import warnings

import numpy as np
import pytest

from checks import IS_NIGHTLY
from larank import SequenceTagger
from larank.training import TrainingWarning
from references import chains
from studies.agreement.campaign import run_problem
from studies.agreement.problems import ESTIMATORS, EXTREME, draw

SLOW = () if IS_NIGHTLY else (80, 135, 172)  # problems of "svmstruct" that take a second each
PROBLEMS = [number for number in range(2000 if IS_NIGHTLY else 203) if number not in SLOW]
TOGETHER = 10  # problems of a test
ROUNDINGS = 64  # units of rounding by which a sum of products may be off


@pytest.mark.parametrize("first", range(0, len(PROBLEMS), TOGETHER))
def test_the_certificate_is_sound_at_every_scale(first):
    for number in PROBLEMS[first : first + TOGETHER]:
        run = run_problem(draw(0, number, EXTREME), None)
        assert not run.failures, f"python -m studies agreement --extreme --problem {number}: {run.failures}"


# Biases that are not exactly the best, and maps, whose bound is one for the kernel.
@pytest.mark.parametrize(
    ("seed", "number"), [(31, 6148), (77, 2570), (31, 9475), (31, 7911), (31, 1267), (77, 2751), (77, 3245)]
)
def test_the_bound_holds_for_rounded_biases_and_behind_a_map(seed, number):
    assert not run_problem(draw(seed, number, EXTREME), None).failures


def test_every_estimator_is_tried_in_both_precisions():
    problems = [draw(0, number, EXTREME) for number in PROBLEMS]
    assert {(problem.estimator, problem.dtype) for problem in problems} == {
        (name, dtype) for name in ESTIMATORS for dtype in ("float32", "float64")
    }


def _tagger_and_problem(number):
    """Return a fitted tagger, its problem in the open, and the weights that the model publishes."""
    random = np.random.default_rng([1, number])
    corpus = chains.corpus(number, labels=int(random.integers(2, 4)))
    scale, C, order = 10 ** random.uniform(-8, 8), float(10 ** random.uniform(-3, 8)), int(random.integers(0, 3))
    weights = np.where(random.random(len(corpus)) < 0.2, 0.0, random.exponential(size=len(corpus)))
    weights[random.integers(len(corpus))] = 1.0
    labels = np.unique(corpus.labels, return_inverse=True)[1]
    if not labels.any():
        labels[0] = 1  # two classes at least
    corpus = corpus._replace(X=corpus.X * scale, labels=labels.astype(np.int32))
    if len(np.unique(labels[np.repeat(weights > 0, np.diff(corpus.starts))])) < 2:
        weights[:] = 1.0  # fit refuses weights that leave one label
    until = {"tol": 1e-3, "max_iter": 50}
    if random.random() < 0.5:
        until = {"max_iter": 2, "average": bool(random.random() < 0.5)}
    tagger = SequenceTagger(order=order, C=C, random_state=0, **until)
    y = [list(corpus.sequence(i)[1]) for i in range(len(corpus))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        tagger.fit((corpus.X, np.diff(corpus.starts)), y, sample_weight=weights)
    chain = chains.Chain(order, corpus.X.shape[1], len(tagger.classes_))
    none = (chains.ABSENT,) * order
    patterns = [chains.Stretch(*corpus.sequence(i), none, chains.ABSENT, 0) for i in range(len(corpus))]
    w = np.concatenate([tagger.coef_.toarray().ravel(), tagger.transitions_.ravel()])
    return tagger, chain, patterns, C * weights, w


@pytest.mark.parametrize("first", range(0, len(PROBLEMS) // 2, TOGETHER))
def test_the_certificate_of_taggers_is_sound_at_every_scale(first):
    for number in range(first, first + TOGETHER):
        tagger, chain, patterns, costs, w = _tagger_and_problem(number)
        result = tagger.result_

        def primal(w, chain=chain, patterns=patterns, costs=costs):
            losses = [chain.h(w, x, chain.worst(w, x)) for x in patterns]
            return w @ w / 2 + costs @ losses

        sizes = [max(np.abs(w) @ np.abs(chain.phi(x, y)) for y in chain.outputs(x)) for x in patterns]
        rounding = 1e-9 * primal(w) + ROUNDINGS * np.finfo(np.float64).eps * (costs @ sizes)
        assert result.exact
        assert result.primal == pytest.approx(primal(w), abs=rounding), number
        assert 0 <= result.dual <= min(primal(w), primal(0 * w)) + rounding, number
        assert result.status != "converged" or result.relative_gap <= 1e-3
        if costs.max() <= 1e4:  # what the general solver can do
            assert result.dual <= primal(chain.optimum(patterns, costs)[0]) + rounding, number
