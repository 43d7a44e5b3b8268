"""`python -m studies agreement`: random problems, every estimator with a certificate, against independent optima."""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from studies.agreement.claims import broken, unsound
from studies.agreement.findings import Campaign, Run
from studies.agreement.machines import MACHINES, solution_of
from studies.agreement.problems import ESTIMATORS, EXTREME, USUAL, Problem, draw
from studies.papers.experiment import check_not_interrupted
from studies.study import Say, Scope, Study, count

PROBLEMS, QUICK_PROBLEMS = 2000, 40
LIMIT, QUICK_LIMIT = 3.0, 0.5
_EVERY = 50  # problems, progress is told


def run_problem(problem: Problem, limit: float | None) -> Run:
    """Fit, find the optimum by other means, and compare."""
    names = "number", "estimator", "kernel", "formulation", "tol", "constructor", "drawn"
    about: dict[str, Any] = {name: getattr(problem, name) for name in names}
    about["C"] = float(problem.parameters.get("C", math.nan))
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = problem.fit(limit)
    except Exception as error:
        return Run(**about, status="error", failures=[f"{type(error).__name__}: {' '.join(str(error).split())}"])
    seconds, unit = time.perf_counter() - began, problem.unit
    check_not_interrupted(model)
    result = replace(model.result_, primal=model.result_.primal / unit, dual=model.result_.dual / unit)
    began = time.perf_counter()
    machine = MACHINES[problem.formulation](problem)
    interval = machine.interval()
    reference_seconds = time.perf_counter() - began
    scale = interval.optimum if interval.optimum > 0 else 1.0
    solution = solution_of(model, machine)
    return Run(
        **about,
        status=result.status,
        gap=result.relative_gap,
        primal=result.primal,
        dual=result.dual,
        optimum=interval.optimum,
        off=max(0.0, machine.primal(solution) - interval.upper) / scale,
        below=max(0.0, interval.lower - result.dual) / scale,
        width=interval.width,
        rounding=interval.rounding / scale,
        iterations=result.iterations,
        steps=int(result.operations.get("steps", 0)) + int(result.operations.get("finishing_steps", 0)),
        seconds=seconds,
        reference_seconds=reference_seconds,
        witnesses={name: abs(value - interval.optimum) / scale for name, (value, _) in interval.witnesses.items()},
        failures=(unsound if problem.is_extreme else broken)(solution, result, machine, interval),
    )


def run(scope: Scope, say: Say) -> Campaign:
    at = scope.options
    numbers, limit = _numbers(scope), at.limit if at.limit is not None else QUICK_LIMIT if scope.quick else LIMIT
    known = _logged(at.log, at.seed)
    runs: list[Run] = []
    failed, began = 0, time.perf_counter()
    with threadpool_limits(1):
        for done, number in enumerate(numbers, 1):
            found = known.get(number)
            if found is None:
                problem = draw(at.seed, number, EXTREME if at.extreme else USUAL)
                if at.estimators and problem.estimator not in at.estimators:
                    continue
                found = run_problem(problem, limit)
                _log(at.log, at.seed, found)
                if found.failures:
                    say(f"problem {number}: {found.estimator}, {found.kernel}: {'; '.join(found.failures)}")
            runs.append(found)
            failed += bool(found.failures)
            if done % _EVERY == 0:
                seconds = time.perf_counter() - began
                say(f"{done} of {len(numbers)} problems, {seconds:.0f} s, {failed} break a claim")
    return Campaign(at.seed, runs, at.extreme)


def _numbers(scope: Scope) -> range:
    at = scope.options
    if at.problem is not None:
        return range(at.problem, at.problem + 1)
    return range(at.first, at.first + (at.problems or (QUICK_PROBLEMS if scope.quick else PROBLEMS)))


def _log(path: Path | None, seed: int, found: Run) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps({"seed": seed, **asdict(found)}) + "\n")


def _logged(path: Path | None, seed: int) -> dict[int, Run]:
    """The runs of this seed in a log, by number."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["number"]: Run(**line) for line in lines if line.pop("seed") == seed}


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text}: numbers of problems and seeds must be at least 0")
    return number


_EXTREME = "scales from 1e-8 to 1e8, costs to 1e8, and only the rule that holds for every estimator"
STUDY = Study(
    name="agreement",
    title="Random problems: every certificate against a general solver, LIBSVM and LIBLINEAR",
    run=run,
    options={
        "--problems": {"type": count, "metavar": "N", "help": f"how many; {PROBLEMS}, or {QUICK_PROBLEMS} if quick"},
        "--problem": {"type": _natural, "metavar": "NUMBER", "help": "only this one, again"},
        "--first": {"type": _natural, "default": 0, "metavar": "NUMBER", "help": "the number to begin with"},
        "--seed": {"type": _natural, "default": 0, "help": "other problems for the same numbers"},
        "--estimators": {"nargs": "+", "choices": tuple(ESTIMATORS), "default": (), "metavar": "NAME"},
        "--extreme": {"action": "store_true", "help": _EXTREME},
        "--limit": {"type": float, "metavar": "SECONDS", "help": f"of each training; {LIMIT:g}"},
        "--log": {
            "type": Path,
            "metavar": "FILE",
            "help": "append runs as JSON lines; those in it are not repeated",
        },
    },
)
