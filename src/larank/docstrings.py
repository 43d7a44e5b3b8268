"""Paragraphs that the docstrings of several estimators have in common, written once."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any, TypeVar

_Documented = TypeVar("_Documented", bound=Any)

_PARAGRAPHS = {
    # Parameters of constructors
    "kernel": """\
kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable, \
default="rbf"
    The kernel. A callable takes two collections of examples and returns the matrix of their kernel values; with it
    `X` may be any sequence of objects, and rows of a sparse matrix come as a CSR matrix. "laplacian", "chi2" and
    "intersection" need dense data, the last two without negative features.
gamma : {"scale", "auto"} or float, default="scale"
    The coefficient of the kernels other than "linear"; "scale" is ``1 / (n_features * X.var())`` of the first data
    seen, "auto" is ``1 / n_features``.
degree : int, default=3
    The degree of the polynomial kernel; other kernels ignore it.
coef0 : float, default=0.0
    The constant of the kernels "poly" and "sigmoid"; other kernels ignore it.""",
    "C": """\
C : float, default=1.0
    The cost of one unit of loss against ``1/2 |w|^2``.""",
    "hard_C": """\
C : float, default=1.0
    The cost of one unit of loss against ``1/2 |w|^2``. Infinity makes margins hard: weights above zero are all the same
    then, and where the model does not separate the classes, `result_.primal` is infinite, and a warning says so.""",
    "cost_matrix": """\
cost_matrix : array of shape (n_classes, n_classes), optional
    The margin ``Delta(y, y')`` by which the score of class ``y`` must exceed that of ``y'``, in the order of
    `classes_`; 1 off the diagonal if not given.""",
    "selection": """\
selection : {"random", "gradient", "active", "autoactive"} or strategy, default="random"
    Which example `fit` takes next: any, or of some random ones the one that is most wrong, or nearest to the
    decision boundary; "autoactive" ends its sample once it has a few near ones. Strategies are in `larank.active`.
sample_size : int, optional
    Out of how many random examples a selection other than "random" takes one; 50, or at most 100 with "autoactive".
label_budget : int, optional
    How many examples `fit` takes at most. The certificate is that of the problem of all examples.""",
    "auto_epochs": """\
epochs : {"auto"} or int, default="auto"
    The passes over the data, with ``stop="epochs"``. "auto" makes another one while passes are cheap and the last one
    raised the dual objective by more than 0.1 %; cheap are 20 passes, 100 000 visits and 2e7 kernel values in all.
    Large data gets one pass, and so do a `selection` that looks at scores and a `label_budget`.
stop : {"epochs", "gap"}, default="epochs"
    Whether to stop after `epochs` passes or at a duality gap.""",
    "epochs": """\
epochs : int, default=1
    The passes over the data, with ``stop="epochs"``.
stop : {"epochs", "gap"}, default="epochs"
    Whether to stop after `epochs` passes or at a duality gap.""",
    "tol": """\
tol : float, optional
    With ``stop="gap"`` the relative duality gap to stop at; if not given, training stops at a gap of `C`.""",
    "limits": """\
max_iter : int, default=1000
    With ``stop="gap"`` the passes after which training stops with a warning. It is refused with ``stop="epochs"``.
time_limit : float, optional
    The seconds after which training stops with a warning.""",
    "class_weight": """\
class_weight : dict or "balanced", optional
    Factors on ``C`` per class; "balanced" takes them inversely proportional to the class frequencies.""",
    "fit_intercept": """\
fit_intercept : bool, default=False
    Whether to add 1 to all kernel values, which gives every class a regularised bias.""",
    "certify": """\
shuffle : bool, default=True
    Whether `fit` visits the examples in random order; `partial_fit` never does.
certify : bool, default=True
    Whether `fit` ends with computing the objectives from scratch, which takes as many kernel values as examples times
    support patterns. Otherwise the certificate holds an estimate made on the way.""",
    "certify_some": """\
shuffle : bool, default=True
    Whether `fit` visits the examples in random order; `partial_fit` never does.
certify : bool or "auto", default="auto"
    Whether `fit` ends with computing the objectives from scratch, which takes as many kernel values as examples times
    support patterns. With "auto", where these are many and would take more than a twentieth of the time of training,
    the primal objective is that of a random sample of the examples: `result_.exact` is then False, and
    `result_.primal_error` the standard error. With False it is an estimate made on the way.""",
    "memory": """\
memory_limit : float, default=2e9
    The bytes that training may take beside X: support patterns, coefficients, kept kernel values, blocks and the model.
    Less means more computation; the model is the same up to what rounding of kernel values does to it.
batch_size : int, default=256
    The number of examples whose kernel values are computed together. It changes the time, and the model only where
    rounding of kernel values does.""",
    "device": """\
device : {"cpu", "cuda"}, "cuda:N" or torch.device, optional
    Where to train and predict by block steps, which are matrix products from end to end: "cuda" is a GPU by PyTorch or
    CuPy, "cpu" the same with NumPy, for comparison. By default the compiled machine trains, in threads. On a device
    examples are dense, kernels are "linear", "poly", "rbf" or "sigmoid", and `memory_limit` is of its memory.""",
    "running": """\
n_jobs : int, optional
    The threads for kernel values, -1 for all processors; by default as many as the linear algebra library uses. With
    several, the values of the next batch are computed while this one is worked on.
random_state : int, RandomState or None, default=None
    The seed of all that is random: the order of the examples and the choices of the algorithm.
verbose : int, default=0
    1 shows a progress bar or, where standard error is no terminal, a line every few seconds.""",
    "map_memory": """\
memory_limit : float, default=2e9
    The bytes for what `fit` makes, beside tiles of kernel values. More is a `MemoryLimitError` that says what would do.
    `transform` has no limit: it takes its result and tiles.""",
    "map_running": """\
n_jobs : int, optional
    The threads for kernel values, -1 for all processors; by default as many as the linear algebra library uses. Their
    number does not change the result.
random_state : int, RandomState or None, default=None
    The seed of the choice of examples.""",
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
