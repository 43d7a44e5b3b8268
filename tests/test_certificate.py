"""The rule of docs/certificate.md, for every estimator with an objective: scales from 1e-8 to 1e8, costs to 1e8.

Each problem is fitted, and its optimum is bounded by a general solver in float64. The gate has 200 problems, the
profile "thorough" of hypothesis 2 000: `pytest --hypothesis-profile=thorough tests/test_certificate.py`.
"""

import pytest
from hypothesis import settings

from studies.agreement.campaign import run_problem
from studies.agreement.problems import ESTIMATORS, EXTREME, draw

PROBLEMS = 2000 if settings.get_current_profile_name() == "thorough" else 200
TOGETHER = 10  # problems of a test


@pytest.mark.parametrize("first", range(0, PROBLEMS, TOGETHER))
def test_the_certificate_is_sound_at_every_scale(first):
    for number in range(first, first + TOGETHER):
        run = run_problem(draw(0, number, EXTREME), None)
        assert not run.failures, f"python -m studies agreement --extreme --problem {number}: {run.failures}"


def test_every_estimator_is_tried_in_both_precisions():
    problems = [draw(0, number, EXTREME) for number in range(200)]
    assert {(problem.estimator, problem.dtype) for problem in problems} == {
        (name, dtype) for name in ESTIMATORS for dtype in ("float32", "float64")
    }
