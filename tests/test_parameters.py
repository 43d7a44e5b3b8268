"""The table of parameters: it knows every estimator, agrees with their docstrings, and refuses what cannot act."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import checks
import larank
from checks import refuses
from larank import parameters
from larank.kernel.selection import Active, Random
from larank.parameters import RULES, OneOf, Rule, check, defaults

PUBLIC = [getattr(larank, name) for name in larank.__all__]
KINDS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, (BaseEstimator, larank.Published))]
BY_NAME = {kind.__name__: kind for kind in KINDS}

# Parameters that only the data can check, so that no wrong values of theirs can be derived.
OF_DATA = {"class_weight", "columns", "constraints", "cost_matrix", "kinds", "label", "label_costs", "label_kernel"}
OF_DATA |= {"model", "random_state", "relations", "templates"}

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def made(kind, **values):
    return kind(**({"model": larank.MulticlassModel(2)} if "model" in defaults(kind) else {}), **values)


def check_of(kind, name):
    return parameters._check_of(kind, name)


def documented(kind):
    """The names and types of the section "Parameters"."""
    section = re.search(r"Parameters\n *-+\n(.*?)(\n *\w+\n *---|\Z)", kind.__doc__, flags=re.S)[1]
    return dict(re.findall(r"^ *(\w+) : (.+)$", section, flags=re.M))


@kinds
def test_every_parameter_has_values_that_are_wrong_or_is_checked_with_the_data(kind):
    assert {name for name in defaults(kind) if checks.wrong_values(kind, name) is None} <= OF_DATA


@kinds
def test_the_docstring_has_every_parameter_with_the_choices_of_the_table(kind):
    entries = documented(kind)
    assert sorted(entries) == sorted(defaults(kind))
    for name, form in entries.items():
        if isinstance(check_of(kind, name), OneOf):
            choices = re.findall(r'"([^"]+)"', form.partition(", default=")[0])
            assert sorted(choices) == sorted(check_of(kind, name).choices)


@kinds
def test_defaults_are_accepted(kind):
    check(made(kind))


@kinds
def test_a_parameter_may_be_none_exactly_if_that_is_the_default(kind):
    for name, default in defaults(kind).items():
        if check_of(kind, name) is None:
            continue
        if default is None:
            check(made(kind, **{name: None}))
        else:
            refuses(rf"{name} must .*None", check, made(kind, **{name: None}))


@kinds
def test_a_value_that_is_not_accepted_is_named_with_the_parameter(kind):
    for name in defaults(kind):
        if check_of(kind, name) is not None:
            what, values = checks.wrong_values(kind, name) or (".*", ("nonsense",))
            for wrong in values:
                refuses(rf"^{name} must .*{what}.*{re.escape(repr(wrong))}", check, made(kind, **{name: wrong}))


def breaking(kind, rule):
    """Values that are fine each by itself and break the rule."""
    usual, others = defaults(kind), {}
    for name, values in (rule.acts_with or rule.not_with).items():
        choices = getattr(check_of(kind, name), "choices", (1, 2))
        others[name] = values[0] if rule.not_with else next((c for c in choices if c not in values), values[0])
    own = getattr(check_of(kind, rule.parameter), "choices", ())
    some = (0.5, 2, 1.5, True, False, "active", {("a", "b"): 2.0}, None, np.inf, parameters.OPERATIONS[:1])
    for value in (*some, *own):
        try:
            parameters.check_value(kind, rule.parameter, value)
        except ValueError:
            continue
        values = {**usual, **others, rule.parameter: value}
        if rule.is_broken(values, [rule.parameter] * (value != usual[rule.parameter])):
            return {**others, rule.parameter: value}
    return None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.parameter} {[*rule.acts_with, *rule.not_with]}")
def test_every_rule_refuses_something_by_name_in_some_estimator(rule):
    refused = 0
    for kind in KINDS:
        values = breaking(kind, rule) if rule.is_for(kind, defaults(kind)) else None
        if values is not None:
            refused += 1
            refuses(r"acts with|must be|cannot act", check, made(kind, **values))
            (complaint,) = parameters.complaints(kind, {**defaults(kind), **values}, values, rules=[rule])
            assert complaint.startswith(rule.parameter)
            assert repr(values[rule.parameter]) in complaint
            assert all(f"{name}={values[name]!r}" in complaint for name in values if name != rule.parameter)
    assert refused


def test_rules_are_for_estimators_that_exist():
    assert {rule.of for rule in RULES} <= {"", *BY_NAME}


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        ("LaRankClassifier", {"tol": 0.1}, "tol acts with stop='gap' only; got tol=0.1 with stop='epochs'"),
        ("StructuredSVC", {"tol": 0.1, "stop": "epochs"}, "tol acts with stop='gap' or 'violation' only; got"),
        ("LaRankClassifier", {"kernel": "linear", "selection": Active()}, "selection must be 'random' with kernel="),
        (
            "LaSVMClassifier",
            {"label_budget": 9, "epochs": 2},
            "acts with stop='epochs' and epochs=1 or 'auto' only: more passes",
        ),
        ("MulticlassSVC", {"solver": larank.Published(epsilon=0.2), "tol": 0.1}, r"with solver=Published\(.*lon=0.2"),
        ("MulticlassSVC", {"solver": larank.Published(epsilon=-1)}, "epsilon must be a finite number > 0, got -1"),
        ("HullerClassifier", {"stop": "gap"}, "tol must be a number above 0 and below 1 with stop='gap', got None"),
        ("LaSVMClassifier", {"tau": 1e-13}, "tau must be at least 1e-12, for numbers are rounded; got 1e-13"),
        ("MulticlassSVCCV", {"gammas": []}, "gammas must hold at least one value, got none"),
    ],
)
def test_what_is_refused_is_told_with_what_would_do(kind, values, said):
    refuses(said, check, made(BY_NAME[kind], **values))


def test_what_a_parameter_that_is_none_stands_for_counts():
    refuses("tol acts with stop='gap' or 'violation' only", check, made(larank.StructuredSVC, tol=0.1), stop="epochs")
    check(made(larank.StructuredSVC, tol=0.1), stop="gap")


def test_what_does_no_harm_is_let_through():
    check(larank.LaRankClassifier("linear", selection=Random()))
    check(larank.LaRankClassifier(gamma=2.0, kernel="linear"))
    check(larank.LaRankClassifier(certify=np.False_, C=np.float32(1)))
    check(larank.MulticlassSVC(cost_matrix=np.ones((3, 3))))
    check(larank.LaRankClassifier(kernel=np.eye(3), selection=np.eye(3)))  # refused where kernels are known


@pytest.mark.parametrize("kind", [kind for kind in KINDS if {"max_iter", "stop"} <= defaults(kind).keys()])
def test_max_iter_without_effect_is_refused_and_with_effect_is_not(kind):
    stops = check_of(kind, "stop").choices
    check(made(kind, stop="gap", max_iter=5, tol=0.1))
    idle = {"stop": "epochs", "finish": False} if "finish" in defaults(kind) else {"stop": "epochs"}
    if "epochs" in stops:
        refuses(r"max_iter .*got max_iter=5", check, made(kind, max_iter=5, **idle))
    if "finish" in defaults(kind):  # its steps are limited
        check(made(kind, max_iter=5000))


def test_a_subclass_is_checked_as_what_it_is():
    class Mine(larank.LinearMulticlassSVC):
        pass

    check(Mine(stop="violation"))
    refuses("stop must be one of 'gap', 'violation'; got 'epochs'", check, Mine(stop="epochs"))


def test_what_a_subclass_fixes_is_checked_too():
    class Mine(larank.LinearMulticlassSVC):
        def __init__(self, note="it is not stored"):
            super().__init__(stop="epochs")

    refuses("stop must be one of 'gap', 'violation'; got 'epochs'", check, Mine())


def test_a_rule_of_ones_own_is_spelled_as_asked():
    class Shouted(parameters.Spelling):
        def name(self, parameter):
            return parameter.upper()

        def given(self, parameter, value):
            return f"{parameter.upper()} {value}"

        def value(self, value):
            return str(value)

    rule = Rule("C", value=2.0, acts_with={"stop": ("gap", "violation")})
    values = {**defaults(larank.LinearMulticlassSVC), "C": 2.0, "stop": "never"}
    (said,) = parameters.complaints(larank.LinearMulticlassSVC, values, ["C"], Shouted(), [rule])
    assert said == "C 2.0 acts with STOP gap or violation only; got C 2.0 with STOP never"
