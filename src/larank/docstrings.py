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
    The certificate, between 0 and 1: the fraction of the trace of the kernel matrix of all training examples that the
    features do not reproduce, the sum of ``k(x, x) - |z(x)|^2`` divided by the sum of ``k(x, x)``.
gamma_ : float
    The value used for `gamma`.""",
    "model": """\
classes_ : ndarray of shape (n_classes,)
    The labels, sorted.
support_ : ndarray
    Indices of the support vectors in `X`, or in the stream of `partial_fit`; they are not ordered by class.
support_vectors_ : ndarray, csr_matrix or list
    The support vectors; not available with the kernel "precomputed".
gamma_ : float
    The value used for `gamma`.
n_iter_ : int
    The number of passes over the data, rounded up.""",
    "n_support_": """\
n_support_ : ndarray of shape (n_classes,)
    The number of support vectors of each class.""",
    "coef_": """\
coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
    The weights, available with the kernel "linear". With two classes, the weights of the second class minus the weights
    of the first.""",
    "intercept_": """\
intercept_ : ndarray of shape (n_classes,), or (1,) with two classes
    The biases, zero without `fit_intercept`. With two classes, the bias of the second class minus the bias of the
    first.""",
    "result_": """\
result_ : Result
    The certificate: objectives, gap, counts, seconds and the history.""",
    # Arguments of methods
    "unlabelled": """\
X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
    The examples. float32 data give float32 kernel values and features, which are faster to compute. With
    ``kernel="precomputed"`` X is the square matrix of kernel values.""",
    "examples": """\
X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
    The examples. float32 data give float32 kernel values, which are faster to compute. With ``kernel="precomputed"`` X
    is the square matrix of kernel values.
y : array of shape (n_samples,)
    The labels: integers, strings or booleans.""",
    "validation": """\
validation : (X, y), optional
    Held-out examples. Their error is recorded in the history, about 20 times per pass.""",
    "certify": """\
certify : bool or "auto", default="auto"
    Whether to compute both objectives on all examples after training, which takes as many kernel values as examples
    times support vectors. "auto" computes the primal objective on a random sample of the examples if all of them would
    take more than a twentieth of the time of training; `result_.exact` is then False, and `result_.primal_error` is the
    standard error. If False, `result_` has an estimate made during training.""",
    "checkpoint": """\
checkpoint : path-like, optional
    File for the state of training, written regularly and at the end, so that training can continue if the process is
    killed. The file must not exist unless `resume` is True. `fit` does not remove it.
every : float, default=30.0
    Minimum number of seconds between two checkpoints. It is increased if writing would take more than 2 % of the time.
resume : bool, default=False
    Whether to continue from `checkpoint`, if that file exists. Data and parameters must be the same, except
    `time_limit`, `n_jobs`, `verbose` and, with `tol`, `max_iter`.""",
    "sample_weight": """\
sample_weight : array of shape (n_samples,), optional
    The weight of each example, not negative: a factor on ``C`` if the estimator has that parameter.""",
    "fitted": """\
Returns
-------
object
    The fitted estimator itself. A `TrainingWarning` reports if training ended early; the model is valid.""",
    "path": """\
Parameters
----------
X, y, sample_weight
    As in `fit`.
Cs : iterable of float
    Values of `C`, all above 0. Models are trained in increasing order and returned in the given order.

Returns
-------
list of estimators
    The fitted models. Ctrl-C ends the path: models for larger values are missing, unless `on_interrupt` raises.""",
    "stream": """\
Calls with parts of a stream give the same model as one call with all of it, if `gamma` is a number and kernel values
are the same to the last digit. Kernel values made of inner products may differ in the last digit; the models then
differ as with another seed. A class takes part from its first example on; examples have no effect as long as there is
only one class. Objectives are not computed from scratch: `result_` has an estimate.

Parameters
----------
X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
    The examples, as in `fit`. With ``kernel="precomputed"`` column j has the kernel values with example j of the
    stream, and the examples of this call are the next ones. Columns of later examples are not used, but must be finite.
y : array of shape (n_samples,)
    The labels. A label that did not occur before is a new class.
classes : array, optional
    Labels that may occur later, so that `decision_function` has a column for each of them from the beginning.""",
}


def with_paragraphs(documented: _Documented) -> _Documented:
    """Put paragraphs where the docstring names them, in brackets on a line of their own; a decorator."""
    if documented.__doc__ is not None:  # python -OO leaves none
        documented.__doc__ = re.sub(
            r"^( *)\[(\w+)\]$", lambda named: indent(_PARAGRAPHS[named[2]], named[1]), documented.__doc__, flags=re.M
        )
    return documented
