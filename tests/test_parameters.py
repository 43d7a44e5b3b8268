"""Declared parameters: one place for type, default, check and text, the same names and order everywhere."""

import inspect
import math
import pickle
import re
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import checks
import larank
from checks import refuses
from larank.declare import Declared, ParameterError, Value, check, defaults, fitted, parameter, parameters_of
from larank.kernel.selection import Active, Random

PUBLIC = [getattr(larank, name) for name in larank.__all__]
KINDS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, Declared)]
ESTIMATORS = [kind for kind in KINDS if issubclass(kind, BaseEstimator)]
BY_NAME = {kind.__name__: kind for kind in KINDS}
SIGNATURES = Path(__file__).with_name("signatures.txt")

# The order of parameters that several estimators have, with the defaults that they share. None: defaults differ.
COMMON = {
    "kernel": "rbf",
    "gamma": "scale",
    "degree": 3,
    "coef0": 0.0,
    "C": None,
    "fit_intercept": None,
    "label_costs": None,
    "average": None,
    "max_support": None,
    "solver": None,
    "stop": "gap",
    "warm_start": False,
    "class_weight": None,
    "tol": None,
    "max_iter": None,
    "time_limit": None,
    "memory_limit": None,
    "n_jobs": None,
    "random_state": None,
    "verbose": 0,
}
SHARED = {"class_weight": None, "max_iter": None, "time_limit": None, "n_jobs": None, "random_state": None}
SHARED |= {name: default for name, default in COMMON.items() if default is not None}
# Names that an idea has nowhere any more.
FORMER = {"epochs", "max_patterns", "budget", "decision", "cost_matrix", "tolerance", "certify", "batch_size", "init"}
FORMER |= {"block_size", "sample_size", "label_budget", "device", "schedule", "n_reprocess", "tau", "feature_map"}
OWN_IDEA = {"AmbiguousClassifier": {"n_reprocess"}}  # reprocessing is a step of its algorithm

# Parameters that only the data can check, so that no wrong values can be derived.
OF_DATA = {"class_weight", "columns", "constraints", "kinds", "label", "label_costs", "label_kernel", "estimator"}
OF_DATA |= {"model", "relations", "templates"}

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
estimators = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


def made(kind, **values):
    needed = {"model": larank.MulticlassModel(2), "estimator": larank.LinearMulticlassSVC()}
    required = [name for name, each in parameters_of(kind).items() if each.is_required]
    return kind(**{name: needed[name] for name in required}, **values)


@estimators
def test_a_constructor_has_at_most_18_parameters_and_no_former_name(kind):
    names = parameters_of(kind).keys()
    assert len(names) <= 18
    assert not names & (FORMER - OWN_IDEA.get(kind.__name__, set()))


@estimators
def test_common_parameters_stand_in_the_same_order_with_the_same_defaults(kind):
    found = [name for name in parameters_of(kind) if name in COMMON]
    groups = ["kernel", "gamma", "degree", "coef0"], ["class_weight", *[*COMMON][13:]]
    for group in groups:
        assert [name for name in found if name in group] == [name for name in group if name in found]
    assert found[-len([name for name in found if name in groups[1]]) :] == [name for name in found if name in groups[1]]
    for name, default in SHARED.items():
        if name in parameters_of(kind):
            assert defaults(kind)[name] == default or (kind.__name__, name) in {("PrimalMulticlassSVC", "kernel")}


def test_signatures_are_what_is_recorded():
    """A change of the public API shows as a difference of this file; `python -m tests.test_parameters` writes it."""
    assert SIGNATURES.read_text() == signatures()


def signatures():
    """One line for the class and one for each parameter."""
    lines = []
    for kind in KINDS:
        lines.append(f"{kind.__name__}")
        for each in inspect.signature(kind).parameters.values():
            default = "" if each.default is each.empty else f" = {each.default!r}"
            lines.append(f"    {'' if each.kind is each.KEYWORD_ONLY else '/ '}{each.name}: {each.annotation}{default}")
    return "\n".join([*lines, ""])


@kinds
def test_python_tools_see_an_explicit_constructor(kind):
    model = made(kind)
    assert list(inspect.signature(kind).parameters) == list(parameters_of(kind))
    assert kind.__init__.__qualname__ == f"{kind.__name__}.__init__"
    assert set(kind.__init__.__annotations__) == {*parameters_of(kind), "return"}
    assert all(
        vars(pickle.loads(pickle.dumps(model)))[name] == vars(model)[name]
        for name in vars(model)
        if name not in ("model", "estimator")
    )
    if isinstance(model, BaseEstimator):
        assert clone(model).get_params(deep=False).keys() == parameters_of(kind).keys()
        assert repr(model).startswith(kind.__name__)
    refuses("unexpected keyword argument 'nonsense'", kind, nonsense=1, error=TypeError)


@kinds
def test_the_docstring_has_every_parameter_with_its_choices_and_default(kind):
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n\w[\w ]*\n---|\Z)", inspect.getdoc(kind), flags=re.S)[1]
    entries = dict(re.findall(r"^(\w+) : (.+)$", section, flags=re.M))
    assert list(entries) == list(parameters_of(kind))
    for name, form in entries.items():
        each = parameters_of(kind)[name]
        assert {*re.findall(r'"([^"]+)"', form.partition(", default=")[0])} >= {*each.choices}
        assert each.is_required or form.endswith((", optional", f"default={each.default!r}".replace("'", '"')))


@kinds
def test_every_text_begins_with_a_sentence_that_stands_alone(kind):
    for name, each in parameters_of(kind).items():
        assert re.fullmatch(r"[A-Z\"`].{14,}\.", each.first_sentence), name
        assert not re.match(r"(Of|Those|That|As|By|From|With|Where|Who)\b", each.first_sentence), name


@kinds
def test_every_parameter_has_values_that_are_wrong_or_is_checked_with_the_data(kind):
    assert {name for name in parameters_of(kind) if checks.wrong_values(kind, name) is None} <= OF_DATA


@kinds
def test_defaults_are_accepted(kind):
    check(made(kind))


@kinds
def test_a_parameter_may_be_none_exactly_if_that_is_the_default(kind):
    for name, each in parameters_of(kind).items():
        if (each.accepted is None and each.check is None) or each.is_required:
            continue
        if each.default is None:
            check(made(kind, **{name: None}))
        else:
            refuses(rf"{name} must .*None", check, made(kind, **{name: None}))


@kinds
def test_a_value_that_is_not_accepted_is_named_with_the_parameter(kind):
    for name, each in parameters_of(kind).items():
        if (each.accepted is not None or each.check is not None) and not each.is_required:
            what, values = checks.wrong_values(kind, name) or (".*", ("nonsense",))
            for wrong in values:
                refuses(rf"^{name} must .*{what}.*{re.escape(repr(wrong))}", check, made(kind, **{name: wrong}))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            larank.LaRankClassifier(max_support=9, tol=0.1),
            "max_support is used only in one pass.* tol=0.1.* Set tol=None",
        ),
        (larank.LaRankClassifier(max_support=9, max_iter=2), "max_support is used only in one pass.* max_iter=2"),
        (
            larank.LaRankClassifier(max_support=9, C=math.inf),
            "max_support must be None with C=inf, because hard margins",
        ),
        (larank.LaRankClassifier(average=True), "average must be 'auto' or False with kernel='rbf' unless max_support"),
        (
            larank.LaRankClassifier(max_support=9, average=True, solver=larank.LaRank(forget="oldest")),
            "average must be 'auto' or False .*forget='least'",
        ),
        (
            larank.LaRankClassifier(solver=larank.LaRank(forget="oldest")),
            "forget='oldest', which is used only with max_",
        ),
        (
            larank.LaRankClassifier(solver=larank.LaRank(n_reprocess=2)),
            "solver must have schedule='fixed' if n_reprocess",
        ),
        (
            larank.LaRankClassifier(solver=larank.LaRank(n_reprocess=-1)),
            "n_reprocess must be an integer >= 0 or None; got -1",
        ),
        (
            larank.LaRankClassifier(solver=larank.BlockSteps("cpu"), n_jobs=2),
            r"n_jobs must be None with solver=BlockSteps",
        ),
        (
            larank.LaRankClassifier(solver=larank.BlockSteps("cpu"), max_support=5),
            "max_support must be None with solver=",
        ),
        (
            larank.LaRankClassifier(solver=larank.BlockSteps("cpu"), C=math.inf),
            "solver cannot be BlockSteps with .*C=inf",
        ),
        (
            larank.LaSVMClassifier(finish=False, tol=0.1),
            "finish must be True with tol=0.1, because the gap is computed",
        ),
        (
            larank.LaSVMClassifier(selection=Active(budget=9), max_iter=2),
            "selection has a budget of labels, but further",
        ),
        (larank.LaSVMClassifier(solver=larank.LaSVM(tau=1e-13)), "tau must be a finite number >= 1e-12; got 1e-13"),
        (larank.MulticlassSVC(C=math.inf, solver="published"), "C must be finite unless solver='active-set'; got inf"),
        (
            larank.MulticlassSVC(formulation="weston-watkins", solver="published"),
            "formulation must be 'crammer-singer' wi",
        ),
        (
            larank.MulticlassSVC(solver=larank.Published(epsilon=0.2), tol=0.1),
            r"tol is not used with solver=Published\(ep",
        ),
        (larank.MulticlassSVC(solver=larank.Published(epsilon=-1)), "epsilon must be a finite number > 0; got -1"),
        (larank.Published(selection="cycle"), "active_set must be False with selection='cycle'"),
        (larank.Published(active_set=False), "cooling must be 'none' with active_set=False; got 'logarithmic'"),
        (larank.Published(epsilon=1.0), "epsilon must be below 0.999, where cooling begins; got 1.0"),
        (
            larank.Published(selection="cycle", row_solver="exact", active_set=False, cooling="none", epsilon=0.5),
            "epsilon is not used with selection='cycle' and row_solver='exact'; got 0.5",
        ),
        (larank.HullerClassifier(tol=1.0), "tol must be a finite number > 0 and < 1 or None; got 1.0"),
        (larank.KernelPerceptron(average=True, max_support=9), "max_support must be None with average=True.*; got 9"),
        (
            larank.AmbiguousClassifier(sharpness=1.0),
            "sharpness must be 0 unless there are several passes.* Set max_iter=20",
        ),
        (larank.AmbiguousClassifier(sharpness=1.0, tol=0.1, max_iter=5), "sharpness must be 0 unless .* tol=None"),
        (larank.TrackingSVC(C=math.inf), "C must be .*got inf. Use a large"),
        (larank.LaRank(operations=("old",)), r"operations must contain 'new'; got \('old',\)"),
        (larank.LaRank(operations=()), r"operations must contain 'new'; got \(\)"),
        (larank.LaRank(operations=3), r"operations must be a collection of .*; got 3"),
        (larank.LaRank(operations=iter(("new", "old"))), "operations must be a collection"),
    ],
)
def test_what_is_refused_is_told_with_the_values_and_what_to_do(model, said):
    with pytest.raises(ParameterError, match=said) as caught:
        check(model)
    assert caught.value.name in parameters_of(type(model)) or isinstance(model.solver, Value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_what_does_no_harm_is_accepted():
    for model in (
        larank.LaSVMClassifier("linear", selection=Random()),
        larank.LaRankClassifier(gamma=2.0, degree=5, coef0=1.0, kernel="linear"),
        larank.LaRankClassifier(C=np.float32(1), fit_intercept=np.False_, max_iter=np.int64(3), verbose=True),
        larank.MulticlassSVC(label_costs=np.ones((3, 3))),
        larank.LaRankClassifier(C=math.inf),
    ):
        check(model)


def test_a_subclass_is_checked_as_its_library_class_also_where_it_fixes_parameters():
    class Mine(larank.LinearMulticlassSVC):
        pass

    class Fixed(larank.LinearMulticlassSVC):
        def __init__(self, note="it is not stored"):
            super().__init__(stop="never")

    check(Mine(stop="violation"))
    for model in (Mine(stop="never"), Fixed()):
        refuses("stop must be one of 'gap', 'violation'; got 'never'", check, model)


class Base(Declared, position=3):
    """A group."""

    last: int = parameter("The last one of them.", default=1, least=0)


class Own(Base):
    """A class of its own.

    Attributes
    ----------
    found_ : int
    """

    first: Literal["a", "b"] | float = parameter("The first one of them.", default="a", above=0, kw_only=False)
    last: int = parameter("The last one, declared again.", default=2, least=2)
    found_: int = fitted()


class Both(Value):
    """A value."""

    flag: bool = parameter("Whether it is true.", default=True)


def test_a_declaration_makes_constructor_docstring_order_and_check():
    assert str(inspect.signature(Own)) == "(first: \"Literal['a', 'b'] | float\" = 'a', *, last: 'int' = 2) -> None"
    assert 'Parameters\n----------\nfirst : {"a", "b"} or float, default="a"\n    The first' in inspect.getdoc(Own)
    assert inspect.getdoc(Own).index("Parameters") < inspect.getdoc(Own).index("Attributes")
    assert not hasattr(Own("b"), "found_")
    check(Own(0.5))
    refuses("first must be 'a', 'b' or a finite number > 0; got -1", check, Own(-1))
    refuses("last must be an integer >= 2; got 1", check, Own(last=1))


def test_value_objects_are_compared_hashed_shown_and_never_changed():
    assert Both() == Both()
    assert Both() != Both(flag=False)
    assert len({Both(), Both(), Both(flag=False)}) == 2
    assert (repr(Both()), repr(Both(flag=False))) == ("Both()", "Both(flag=False)")
    refuses("Both cannot be changed; make another one", setattr, Both(), "flag", False, error=AttributeError)


if __name__ == "__main__":
    SIGNATURES.write_text(signatures())
