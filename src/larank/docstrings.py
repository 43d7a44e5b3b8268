"""Paragraphs that the docstrings of several estimators have in common, written once."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any, TypeVar

_Documented = TypeVar("_Documented", bound=Any)

_PARAGRAPHS = {
    # Fitted attributes
    "map_model": """\
n_components_ : int
    The number of features. A kernel that is zero on all examples has one feature, which is zero.
trace_error_ : float
    The certificate: the share of the trace of the kernel matrix of all training examples that the features leave, the
    sum of ``k(x, x) - |z(x)|^2`` over that of ``k(x, x)``.
gamma_ : float
    The value used for `gamma`.""",
    "model": """\
classes_ : ndarray of shape (n_classes,)
    The labels.
support_ : ndarray
    The support patterns, as numbers of examples in `X` or in the stream of `partial_fit`, not ordered by class.
support_vectors_ : ndarray, csr_matrix or list
    The support patterns; not with the kernel "precomputed".
gamma_ : float
    The value used for `gamma`.
n_iter_ : int
    The passes over the data, rounded up.""",
    "n_support_": """\
n_support_ : ndarray of shape (n_classes,)
    The number of support patterns of each class.""",
    "coef_": """\
coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
    The weights, with the kernel "linear". With two classes, those of the second minus those of the first.""",
    "intercept_": """\
intercept_ : ndarray of shape (n_classes,), or (1,) with two classes
    The biases, zero without `fit_intercept`. With two classes, that of the second minus that of the first.""",
    "result_": """\
result_ : Result
    The certificate: objectives, gap, counts, seconds and the history.""",
    # Arguments of methods
    "unlabelled": """\
X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
    The examples. float32 data make float32 kernel values and features, which are faster. With ``kernel="precomputed"``
    it is the square matrix of kernel values.""",
    "examples": """\
X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
    The examples. float32 data make float32 kernel values, which are faster. With ``kernel="precomputed"`` it is the
    square matrix of kernel values.
y : array of shape (n_samples,)
    The labels: integers, strings, booleans.""",
    "validation": """\
validation : (X, y), optional
    Examples whose error goes into the history, some times per epoch.""",
    "certify": """\
certify : bool or "auto", default="auto"
    Whether to compute both objectives on all examples after training, which takes as many kernel values as examples
    times support vectors. "auto" computes the primal objective on a random sample of the examples if all of them would
    take more than a twentieth of the time of training; `result_.exact` is then False, and `result_.primal_error` is the
    standard error. If False, `result_` holds an estimate made during training.""",
    "checkpoint": """\
checkpoint : path-like, optional
    A file that the state of training is written to now and then, and at the end, so that nothing is lost where the
    process is killed. It must not be there yet, unless `resume` is True; `fit` does not remove it.
every : float, default=30.0
    The seconds between two checkpoints, at least; more where they would take over 2 % of the time.
resume : bool, default=False
    Whether to go on from `checkpoint`, which must be of the same data and parameters, but for `time_limit`, `max_iter`,
    `n_jobs` and `verbose`. Where the file is not there, training starts from the beginning.""",
    "sample_weight": """\
sample_weight : array of shape (n_samples,), optional
    Factors on ``C`` per example, not negative.""",
    "hull_weight": """\
sample_weight : array of shape (n_samples,), optional
    How often each example is there, not negative: one of weight zero is left out. Beyond that weights change nothing,
    for a convex hull with an example twice, or half of it, is the same.""",
    "fitted": """\
Returns
-------
object
    Itself, fitted. A `TrainingWarning` says when training ended early; the model is valid all the same.""",
    "path": """\
Parameters
----------
X, y, sample_weight
    As for `fit`.
Cs : iterable of float
    The costs, in any order.

Returns
-------
list of estimators
    The fitted models, in the order of `Cs`. Ctrl-C ends the path: models for larger costs are missing, unless
    `on_interrupt` has it raise.""",
    "stream": """\
Calls with parts of a stream make the same model as one call with all of it, or as one epoch of `fit` without `shuffle`,
if `gamma` is a number and kernel values are the same to the last digit. Those made of inner products may not be; then
the models differ as with another seed. A class takes part from its first example on; examples that come while there is
no other class teach nothing. There is no certificate from scratch:
`result_` holds an estimate.

Parameters
----------
X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
    As for `fit`. With ``kernel="precomputed"`` column j is the kernel value with example j of the stream; the examples
    of this call are the next ones. Columns of examples to come may be there; they must be finite and are not used.
y : array of shape (n_samples,)
    The labels; those never seen before are new classes.
classes : array, optional
    Labels that may come later, so that `decision_function` has a column for them already.""",
}


def with_paragraphs(documented: _Documented) -> _Documented:
    """Put paragraphs where the docstring names them, in brackets on a line of their own; a decorator."""
    if documented.__doc__ is not None:  # python -OO leaves none
        documented.__doc__ = re.sub(
            r"^( *)\[(\w+)\]$", lambda named: indent(_PARAGRAPHS[named[2]], named[1]), documented.__doc__, flags=re.M
        )
    return documented
