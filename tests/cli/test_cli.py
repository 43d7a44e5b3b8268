"""The `larank` command: what it writes, where it writes it, and how it says that it failed."""

import errno
import gzip
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from commandline import failure, larank
from scipy import sparse
from sklearn.pipeline import Pipeline

from fulldisk import full_disk
from larank import parameters
from larank.cli.options import classifiers
from larank.data import models

COMMANDS = ["train", "predict", "eval", "info", "demo"]
ALGORITHMS = classifiers()
CENTRES = np.array([[3.0, 0, 0, 1], [0, 3.0, 0, 1], [0, 0, 3.0, 1]])


def examples(n=90, seed=0, noise=1.0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return CENTRES[y] + noise * random.normal(size=(n, 4)), y


def svmlight(path, X, y):
    lines = [f"{b} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(a)) for a, b in zip(X, y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def csv(path, X, y):
    path.write_text("".join(",".join(map(repr, map(float, a))) + f",{b}\n" for a, b in zip(X, y, strict=True)))
    return path


def classifier(path):
    """Of a model file; that of a table has an encoder before it."""
    model = models.load(path)
    return model[-1] if isinstance(model, Pipeline) else model


@dataclass
class Files:
    train: Path
    test: Path
    model: Path
    text_model: Path  # trained on a dense file with the labels a, b, c


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    made = Files(
        svmlight(folder / "train.svm", *examples()),
        svmlight(folder / "test.svm", *examples(seed=1)),
        folder / "model.larank",
        folder / "text.larank",
    )
    larank("train", made.train, made.model, "--quiet")
    X, y = examples()
    larank("train", csv(folder / "train.csv", X, np.array(["a", "b", "c"])[y]), made.text_model, "--quiet")
    return made


# ---- Help ----


def test_version():
    assert larank("--version").stdout.startswith("larank ")


def test_help_lists_every_command_with_the_beginning_of_its_own_help():
    text = larank("--help").stdout
    assert "Exit status" in text
    listed = dict(re.findall(r"^  ([a-z-]+)  +(\w.*?)(?:\.\.\.)?$", text.split("Commands:")[1], re.MULTILINE))
    assert listed.keys() == {*COMMANDS, "tag", "parse", "label-concepts"}
    for command in (*COMMANDS, "tag"):
        shown = larank(command, "--help").stdout
        assert listed[command] in " ".join(shown.split())
        assert re.search(rf"Examples?:\n    larank {command}\b", shown)


def test_help_imports_nothing_that_it_does_not_need():
    code = "import sys, larank.cli; print(*{name.split('.')[0] for name in sys.modules})"
    imported = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert "larank" in imported
    assert not imported & {"numpy", "scipy", "sklearn", "matplotlib", "safetensors"}


# ---- train ----


def test_predictions_import_no_pandas(files, tmp_path):
    larank("train", files.train, tmp_path / "model.larank", "--quiet")
    code = (
        f"import sys; sys.argv = ['larank', 'predict', {str(tmp_path / 'model.larank')!r}, {str(files.train)!r}]\n"
        "from larank.cli import app\n"
        "app(standalone_mode=False)\n"
        "print('imported', *{'pandas', 'sklearn.metrics', 'sklearn.model_selection'} & {*sys.modules})\n"
        "import pandas, scipy.stats, sklearn.svm, sklearn.utils.fixes\n"
        "print('mode', sklearn.utils.fixes._mode([1, 2, 2])[0], pandas.DataFrame().shape, scipy.stats.norm.cdf(0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-2:] == ["imported", "mode [2] (0, 0) 0.5"], done.stderr


def test_train_writes_a_model_and_shows_its_certificate(files, tmp_path):
    result = larank("train", files.train, tmp_path / "m.larank", "--test", files.test)
    estimator = models.load(tmp_path / "m.larank")
    X, y = examples(seed=1)
    error = np.mean(estimator.predict(X.round(6)) != y)
    assert f"{error:.2%}" in result.stdout
    for piece in ("converged", "duality gap", "support patterns", f"model written to {tmp_path / 'm.larank'}"):
        assert piece in result.stdout
    assert "larank: training" in result.stderr
    quiet = larank("train", files.train, tmp_path / "n.larank", "--test", files.test, "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_options_left_away_keep_the_defaults_shown(algorithm, files, tmp_path):
    text = " ".join(larank("train", "--algorithm", algorithm, "--help").stdout.split("Options:")[1].split())
    larank("train", files.train, tmp_path / "m", "--algorithm", algorithm, "--quiet")
    estimator = models.load(tmp_path / "m")
    defaults = parameters.defaults(ALGORITHMS[algorithm])
    assert type(estimator) is ALGORITHMS[algorithm]
    assert estimator.get_params() == defaults | {"random_state": 0}
    for name in defaults.keys() & {"kernel", "formulation", "stop", "max_iter", "epochs", "degree", "n_reprocess"}:
        spelled = f" --{name.replace('_', '-')}"
        option = text[text.index(f"{spelled} NUMBER" if f"{spelled} NUMBER" in text else f"{spelled} <") :]
        if defaults[name] is not None:
            assert option[option.index("[default: (") :].startswith(f"[default: ({defaults[name]})")


def test_help_says_which_algorithm_has_which_option_and_default():
    text = " ".join(larank("train", "--help").stdout.split())
    assert "(sdm: gap; larank, lasvm, ambiguous, huller, tracking: epochs)" in text
    assert "--intercept-scaling <float> sdm: " in text
    assert "--cost-matrix" not in text
    assert "--tracking-algorithm <process-reprocess|simple> tracking: " in text
    assert "--budget" not in larank("train", "--algorithm", "sdm", "--help").stdout
    assert "--budget" not in larank("train", "--algorithm=sdm", "--help").stdout


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_parameter_that_a_text_can_be_is_an_option(algorithm):
    text = larank("train", "--algorithm", algorithm, "--help").stdout
    for name, default in parameters.defaults(ALGORITHMS[algorithm]).items():
        if name in ("cost_matrix", "label_kernel", "warm_start", "verbose", "random_state"):
            continue
        spelled = {"C": "-C", "fit_intercept": "--intercept", "algorithm": f"--{algorithm}-algorithm"}
        assert f"  {spelled.get(name, '--' + name.replace('_', '-'))} " in text
        if isinstance(default, bool):
            assert f"/ --no-{spelled.get(name, '--' + name)[2:].replace('_', '-')}" in text


BALANCED = {"time_limit": 60.0, "class_weight": "balanced", "random_state": 7}
POLY = {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0, "C": 10.0, "memory_limit": 1e8, "n_jobs": 1}
BALANCING = "--time-limit 60 --class-weight balanced --seed 7"
OF_POLY = f"--kernel poly --gamma 0.5 --degree 2 --coef0 1 -C 10 --memory-limit 1e8 --n-jobs 1 {BALANCING}"
# Algorithm, options, parameters.
OPTIONS = [
    ("huller", "--kernel linear --stop gap --tol 0.5", {"kernel": "linear", "stop": "gap", "tol": 0.5}),
    ("huller", "--no-shuffle", {"shuffle": False}),
    ("tracking", "--tracking-algorithm simple --n-steps 3 -C 2", {"algorithm": "simple", "n_steps": 3, "C": 2.0}),
    ("perceptron", "--decision average --margin 0.5", {"decision": "average", "margin": 0.5}),
    ("passive-aggressive", "-C 0.5 --epochs 2", {"C": 0.5, "epochs": 2}),
    ("larank", "--selection active --label-budget 60", {"selection": "active", "label_budget": 60}),
    ("larank", "--selection active --sample-size 5 --operations new,old", {"sample_size": 5}),
    (
        "larank",
        f"{OF_POLY} --epochs 2 --schedule fixed --n-reprocess 3",
        {"epochs": 2, "schedule": "fixed", "n_reprocess": 3, **POLY, **BALANCED},
    ),
    ("larank", "--stop gap --tol 0.01", {"stop": "gap", "tol": 0.01, "gamma": "scale"}),
    ("lasvm", "--no-finish --delta-max 0.5", {"finish": False, "delta_max": 0.5}),
    ("lasvm", "--tau 0.01 --no-certify", {"tau": 0.01, "certify": False}),
    ("mcsvm", "--solver published", {"solver": "published"}),
    (
        "mcsvm",
        f"{OF_POLY} --tol 0.01 --formulation weston-watkins --max-iter 500 --intercept",
        {"tol": 0.01, "formulation": "weston-watkins", "max_iter": 500, "fit_intercept": True, **POLY, **BALANCED},
    ),
    ("primal", "--kernel rbf --n-components 5 --memory-limit 1e6", {"n_components": 5, "memory_limit": 1e6}),
    ("primal", "--kernel linear --softmax-gamma inf", {"kernel": "linear", "softmax_gamma": np.inf}),
    ("sdm", "--no-shrinking --no-cooling", {"shrinking": False, "cooling": False}),
    ("sdm", "--intercept-scaling 2 --no-shrinking", {"intercept_scaling": 2.0, "shrinking": False}),
    ("sdm", "--formulation weston-watkins --max-iter 500", {"formulation": "weston-watkins", "max_iter": 500}),
    ("sdm", "--formulation one-vs-rest --stop violation", {"formulation": "one-vs-rest", "stop": "violation"}),
    ("sdm", f"-C 0.25 --tol 0.01 --no-intercept {BALANCING}", {"C": 0.25, "fit_intercept": False, **BALANCED}),
]


@pytest.mark.parametrize(("algorithm", "options", "expected"), OPTIONS)
@pytest.mark.filterwarnings("ignore:training was ended")
def test_options_reach_the_classifier(algorithm, options, expected, files, tmp_path):
    larank("train", files.train, tmp_path / "m", "--algorithm", algorithm, *options.split(), "--quiet")
    found = models.load(tmp_path / "m").get_params()
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "larank --kernel linear"])
def test_a_model_of_every_classifier_serves_every_command(algorithm, files, tmp_path):
    model, page = tmp_path / "m.larank", tmp_path / "r.html"
    options = ["--algorithm", *algorithm.split(), "--test", files.test, "--report", page]
    result = larank("train", files.train, model, *options)
    assert "stopped early" not in result.stderr
    X, y = examples(seed=1)
    estimator = models.load(model)
    name, status = type(estimator).__name__, estimator.result_.status
    predicted = estimator.predict(sparse.csr_matrix(X.round(6)))
    error = f"{np.mean(predicted != y):.2%}"
    shown = page.read_text()
    assert f"{name} on train.svm" in shown
    if algorithm in ("sdm", "perceptron"):  # one gap, if there is one
        assert set(re.findall(r"[a-z]+ gap(?=</)", shown)) == ({"relative gap"} if algorithm == "sdm" else set())
    assert "nan" not in re.sub(r"(?s)<svg.*?</svg>|<style.*?</style>", "", shown)
    assert larank("predict", model, files.test).stdout.split() == [str(label) for label in predicted]
    assert larank("predict", model, files.test, "--scores").stdout.startswith("label\t0\t1\t2\n")
    assert error in larank("eval", model, files.test).stdout
    assert error in result.stdout
    assert status in result.stdout
    information = larank("info", model).stdout
    assert all(piece in information for piece in (name, "0, 1, 2", status))
    if hasattr(estimator, "kernel"):
        assert estimator.kernel in information


def test_lasvm_finishes_in_as_many_steps_as_max_iter_says(tmp_path):
    random = np.random.default_rng(0)
    data = svmlight(tmp_path / "far.svm", random.normal(loc=100, size=(80, 2)), random.integers(0, 2, 80))
    options = ("--algorithm", "lasvm", "--kernel", "poly", "--max-iter", 10, "--quiet")
    said = "steps of finishing, 10 for each support vector; a larger max_iter allows more"
    assert said in larank("train", data, tmp_path / "m.larank", *options).stderr


def test_a_model_may_be_trained_again(files, tmp_path):
    target = tmp_path / "m.larank"
    target.touch()  # an empty file, as mktemp makes it
    for C in (1, 2):
        larank("train", files.train, target, "-C", C, "--quiet")
    assert models.load(target).C == 2


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ("--max-iter 1 --tol 1e-12", "max_iter"),
        ("--algorithm sgdqn --memory-limit 2e3 --time-limit 1e-9", "time_limit"),  # a stream
    ],
)
def test_training_stopped_early_is_saved_with_one_line_for_each_message(options, status, files, tmp_path):
    target = tmp_path / "m.larank"
    lines = larank("train", files.train, target, *options.split(), "--quiet").stderr.splitlines()
    stopped = f"larank: stopped early ({status.replace('_', ' ')})"
    assert all(line.startswith(("larank: warning: ", stopped)) for line in lines)
    assert sum(line.startswith(stopped) for line in lines) == 1
    assert str(target) in lines[-1]
    assert "duality gap" in lines[-1]
    assert models.load(target).result_.status == status


# ---- train on a stream ----


def gz(path):
    """The file, compressed beside it."""
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


def sgdqn(data, model, *options):
    return larank("train", data, model, "--algorithm", "sgdqn", *options)


STREAMS = "is read as a stream: in memory it might take more than --memory-limit allows"


@pytest.mark.parametrize("kind", ["svm", "csv", "svm.gz", "csv.gz"])
def test_a_file_larger_than_a_quarter_of_the_memory_limit_is_a_stream(kind, tmp_path):
    path = (svmlight if "svm" in kind else csv)(tmp_path / f"train.{kind[:3]}", *examples(3000))
    path = gz(path) if "gz" in kind else path
    counted = path.stat().st_size * (4 if "gz" in kind else 1)
    lines = {}
    for name, limit in (("memory", 4 * counted), ("stream", 4 * counted - 4)):
        result = sgdqn(path, tmp_path / name, "--memory-limit", limit, "--t0", 1000, "--epochs", 2, "--no-shuffle")
        lines[name] = [line for line in result.stderr.splitlines() if "stream:" in line]
        assert f"model written to {tmp_path / name}" in result.stdout
    assert lines == {"memory": [], "stream": [f"larank: {path} {STREAMS}"]}
    memory, stream = (classifier(tmp_path / name) for name in ("memory", "stream"))
    np.testing.assert_allclose(stream.coef_, memory.coef_, atol=1e-9)
    assert memory.result_.exact
    assert not stream.result_.exact
    assert stream.result_.operations["visits"] == memory.result_.operations["visits"] == 6000


def test_other_algorithms_and_archives_are_read_into_memory(tmp_path):
    X, y = examples(600)
    np.savez(tmp_path / "train.npz", X=X, y=y)
    assert "stream:" not in sgdqn(tmp_path / "train.npz", tmp_path / "m", "--memory-limit", 2000).stderr
    path = svmlight(tmp_path / "train.svm", X, y)
    limit = 3.9 * path.stat().st_size
    kernel = larank("train", path, tmp_path / "m", "--algorithm", "larank", "--memory-limit", limit)
    assert "stream:" not in kernel.stderr


def test_a_stream_has_a_test_a_report_and_nothing_to_say_if_quiet(files, tmp_path):
    path, page = svmlight(tmp_path / "train.svm", *examples(3000)), tmp_path / "r.html"
    result = sgdqn(path, tmp_path / "m", "--memory-limit", 1e4, "--test", files.test, "--report", page)
    X, y = examples(seed=1)
    error = np.mean(models.load(tmp_path / "m").predict(X.round(6)) != y)
    assert f"{error:.2%}" in result.stdout
    assert 0 < error < 0.2
    assert all(piece in page.read_text() for piece in ("3000", "Most confused"))
    quiet = sgdqn(path, tmp_path / "m", "--memory-limit", 1e4, "--test", files.test, "--quiet")
    assert quiet.stdout == quiet.stderr == ""


def test_features_and_indices_of_a_stream_are_as_given(files, tmp_path):
    path = svmlight(tmp_path / "train.svm", *examples(600))
    sgdqn(path, tmp_path / "m", "--memory-limit", 1e4, "--features", 9)
    assert models.load(tmp_path / "m").n_features_in_ == 9
    sgdqn(path, tmp_path / "m", "--memory-limit", 1e4, "--zero-based")
    assert models.load(tmp_path / "m").n_features_in_ == 5


def test_a_test_file_that_is_too_wide_for_a_stream_is_told_of_when_the_model_is_safe(tmp_path):
    X, y = examples(600)
    path, wide = svmlight(tmp_path / "train.svm", X, y), svmlight(tmp_path / "wide.svm", np.hstack([X, X]), y)
    stream = ("--algorithm", "sgdqn", "--memory-limit", 1e4, "--quiet")
    line = failure("train", path, tmp_path / "m", *stream, "--test", wide)
    assert "has 8 features, the model 4; train with --features 8" in line
    assert models.load(tmp_path / "m").n_features_in_ == 4
    larank("train", path, tmp_path / "m", *stream, "--test", wide, "--features", 8)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "not enough memory"),
        (MemoryError("std::bad_alloc"), "not enough memory: std::bad_alloc"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device"),
        (ValueError("two\n   lines"), "two lines"),
        (KeyError("surprise"), "KeyError: 'surprise' (--debug shows where)"),
    ],
)
def test_whatever_fails_is_said_in_one_line(error, said, files, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "save", mock.Mock(side_effect=error))
    arguments = ["train", files.train, tmp_path / "m", "--quiet"]
    assert failure(*arguments) == f"larank: error: {said}"
    assert larank(*arguments, "--debug", code=1).exception is error


# ---- predict ----


def test_predict_writes_one_label_per_line_and_a_score_for_each_class(files, tmp_path, monkeypatch):
    X, model = examples(seed=1)[0].round(6), models.load(files.model)
    labels = larank("predict", files.model, files.test).stdout
    assert labels.splitlines() == [str(label) for label in model.predict(X)]
    result = larank("predict", files.model, files.test, tmp_path / "labels.txt")
    assert (result.stdout, result.stderr) == ("", "")
    assert (tmp_path / "labels.txt").read_text() == labels
    scores = larank("predict", files.model, files.test, "--scores").stdout
    assert scores.startswith("label\t0\t1\t2\n")
    table = np.array([line.split("\t") for line in scores.splitlines()[1:]], dtype=float)
    np.testing.assert_allclose(table[:, 1:], model.decision_function(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(table[:, 0], np.argmax(model.decision_function(X), axis=1))
    monkeypatch.setattr("larank.cli.examples._ROWS_AT_ONCE", 7)
    assert larank("predict", files.model, files.test).stdout == labels
    assert larank("predict", files.model, files.test, "--scores").stdout == scores


def test_two_classes_have_one_score(tmp_path):
    X, y = examples()
    data = svmlight(tmp_path / "two.svm", X, np.where(y == 0, -1, 1))
    larank("train", data, tmp_path / "m", "--quiet")
    lines = larank("predict", tmp_path / "m", data, "--scores").stdout.splitlines()
    assert lines[0] == "label\t1"
    for label, score in (line.split("\t") for line in lines[1:]):
        assert (label == "1") == (float(score) > 0)


def test_a_sparse_file_may_have_fewer_features_and_training_may_have_more(files, tmp_path):
    X, y = examples(seed=1)
    narrow = svmlight(tmp_path / "narrow.svm", X[:, :3], y)
    expected = models.load(files.model).predict(np.hstack([X[:, :3].round(6), np.zeros((len(X), 1))]))
    assert larank("predict", files.model, narrow).stdout.split() == [str(label) for label in expected]
    larank("eval", files.model, narrow)
    wide = svmlight(tmp_path / "wide.svm", np.hstack([X, X[:, :1]]), y)
    for test, options, n_features in ((narrow, (), 4), (wide, ("--features", 5), 5)):
        larank("train", files.train, tmp_path / "m", "--test", test, "--quiet", *options)
        assert models.load(tmp_path / "m").n_features_in_ == n_features


def test_a_prediction_that_does_not_fit_on_the_disk_keeps_the_old_file(files, tmp_path):
    target = tmp_path / "labels.txt"
    target.write_text("old")
    with full_disk(10):
        line = failure("predict", files.model, files.test, target)
    assert "labels.txt: File too large" in line
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


# ---- eval and info ----


def test_eval_counts_errors_by_class_and_by_pair(files, tmp_path):
    data = svmlight(tmp_path / "far.svm", 10 * CENTRES[[0, 0, 0, 1, 1, 2]], [0, 1, 1, 1, 1, 7])
    result = larank("eval", files.model, data)
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["test", "error", "50.00%"] in rows
    assert ["1", "4", "2", "50.00%"] in rows
    assert ["7", "1", "1", "100.00%"] in rows  # a class the model never saw is always an error
    assert ["1", "0", "2"] in rows
    assert ["7", "2", "1"] in rows
    warning = f"{data}: 1 example has a label unknown to the model (7), counted as an error"
    assert result.stderr == f"larank: warning: {warning}\n"


def test_unknown_labels_are_counted_and_named_once(files, tmp_path):
    data = svmlight(tmp_path / "odd.svm", 10 * CENTRES[[0, 0, 0, 1]], [0, 8, 7, 8])
    result = larank("train", files.train, tmp_path / "m", "--test", data, "--quiet")
    said = "3 examples have labels unknown to the model (7, 8), counted as errors"
    assert result.stderr == f"larank: warning: {data}: {said}\n"


def test_eval_shows_the_worst_if_there_are_errors(files, tmp_path):
    wrong, right = (svmlight(tmp_path / f"{y[0]}.svm", 10 * CENTRES, y) for y in ([1, 2, 0], [0, 1, 2]))
    stdout = larank("eval", files.model, wrong, "--top", 1).stdout
    assert "Classes by error (1 of 3)" in stdout
    assert "Most confused (1 of 3)" in stdout
    stdout = larank("eval", files.model, right).stdout
    assert "0.00%" in stdout
    assert "confused" not in stdout


def test_labels_compare_although_one_file_has_only_numbers(tmp_path):
    X, y = examples()
    mixed = csv(tmp_path / "mixed.csv", X, np.array(["1", "2", "other"])[y])
    larank("train", mixed, tmp_path / "m", "--quiet")
    numbers = csv(tmp_path / "numbers.csv", 10 * CENTRES[:2], [1, 1])
    rows = [line.split() for line in larank("eval", tmp_path / "m", numbers).stdout.splitlines()]
    assert ["1", "2", "1", "50.00%"] in rows
    assert ["1", "2", "1"] in rows


def test_info_shows_what_the_model_is_and_cuts_labels_on_a_terminal_only(files, tmp_path, monkeypatch):
    stdout = larank("info", files.text_model).stdout
    assert all(piece in stdout for piece in ("LinearMulticlassSVC", "crammer-singer", "a, b, c", "converged"))
    assert re.search(r"(?m)^attributes\.classes_ +0, 1, 2 *$", larank("info", files.model).stdout)
    X, _ = examples()
    larank("train", svmlight(tmp_path / "many.svm", X, np.arange(90) % 30), tmp_path / "m", "--quiet", "--tol", 0.5)
    assert f"  {', '.join(map(str, range(30)))}\n" in larank("info", tmp_path / "m").stdout
    monkeypatch.setattr("larank.cli.info.is_terminal", lambda: True)
    assert "  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (30 in all)\n" in larank("info", tmp_path / "m").stdout


@pytest.mark.parametrize("algorithm", ["larank", "lasvm", "sgdqn", "perceptron", "tracking"])
def test_info_in_a_pipe_cuts_nothing_and_shows_no_private_state(algorithm, tmp_path):
    column = "a name that is longer than a line of a terminal, " * 3
    cells = "\n".join(f"{i % 5},{i % 3},{i % 2}" for i in range(60))
    (tmp_path / "a.csv").write_text(f'"{column}",_size,kind\n{cells}\n')
    larank("train", tmp_path / "a.csv", tmp_path / "m.larank", "--algorithm", algorithm, "--quiet")
    lines = larank("info", tmp_path / "m.larank").stdout.splitlines()
    names = [line.split("  ")[0] for line in lines]
    assert f"encoder.attributes.columns_.{column.strip()}" in names
    assert "encoder.attributes.columns_._size" in names
    assert f"{column.strip()}, _size" in "".join(lines)
    assert "classifier.attributes.classes_" in names
    assert not [name for name in names if "attributes._" in name]
    assert "…" not in "".join(lines)


# ---- demo ----


def test_demo_compares_and_writes_model_and_report(tmp_path):
    folder = tmp_path / "new" / "folder"
    lines = larank("demo", "--output", folder).stdout.splitlines()
    names = ("LaRank, one pass", "LaRank x1, paper", "scikit-learn SVC", "larank, linear")
    rows = {name: line for line in lines for name in names if line.strip().startswith(name)}
    assert len(rows) == len(names)
    # The paper's figures, and ranges around them: the one pass of ours visits the examples in another order.
    assert all(piece in rows["LaRank x1, paper"] for piece in ("2.80%", "5226", "55M", "940"))
    ours = re.search(r"([\d.]+)% +(\d+) +(\d+)M +(\d+) +[\d.]+ +[\d.]+", rows["LaRank, one pass"])
    assert ours is not None
    for figure, least, most in zip(ours.groups(), (0, 5000, 20, 1000), (3.2, 5460, 80, 12000), strict=True):
        assert least <= float(figure) <= most
    assert sorted(path.name for path in folder.iterdir()) == ["model.larank", "report.html"]
    model = models.load(folder / "model.larank")
    assert type(model).__name__ == "LaRankClassifier"
    assert len(model.classes_) == 26
    assert "LETTER" in (folder / "report.html").read_text()


# ---- As a process of its own ----


def process(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", "from larank.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with SIGINT ignored; the child must be able to hear it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(
    ("arguments", "code", "traceback"),
    [
        (["--version"], 0, False),
        (["info", "/gone.larank"], 1, False),
        (["info", "/gone.larank", "--debug"], 1, True),
        (["--nonsense"], 2, False),
    ],
)
def test_the_process_has_an_exit_status_and_a_traceback_if_asked(arguments, code, traceback):
    child = process(*arguments)
    _, stderr = child.communicate(timeout=60)
    assert (child.returncode, "Traceback" in stderr) == (code, traceback)


def test_a_closed_pipe_is_no_failure_to_shout_about(files):
    child = process("predict", files.model, files.test)
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    assert child.stderr.read() == ""
    child.wait(timeout=60)


def endless_training(folder):
    """A training that ends by a signal only, and has begun: a checkpoint is there."""
    data = svmlight(folder / "hard.svm", *examples(3000, noise=8.0))
    endless = ("--tol", "1e-15", "--max-iter", 10**9, "--time-limit", 200, "-C", 1000)
    checkpoint = folder / "checkpoint"
    child = process("train", data, folder / "m.larank", *endless, "--checkpoint", checkpoint, "--every", 0)
    while not checkpoint.exists():
        assert child.poll() is None
        time.sleep(0.01)
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_training_saves_what_it_has(tmp_path, number):
    child = endless_training(tmp_path)
    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert stderr.startswith("larank: training ")
    assert "larank: stopped early (interrupted); " in stderr
    assert "Traceback" not in stderr
    assert "interrupted" in stdout
    assert models.load(tmp_path / "m.larank").result_.status == "interrupted"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_before_training_ends_the_command_at_once(tmp_path, number):
    os.mkfifo(tmp_path / "pipe.svm")  # nobody writes into it
    child = process("train", tmp_path / "pipe.svm", tmp_path / "m.larank")
    with open(tmp_path / "pipe.svm", "wb"):  # opens once the command reads
        child.send_signal(number)
        _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert stderr == "larank: interrupted\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe.svm"]


def test_a_second_signal_ends_the_command_at_once_and_leaves_files_as_they_were(tmp_path):
    child = endless_training(tmp_path)
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):  # so both are there when it goes on
        child.send_signal(number)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "larank: interrupted\n" in stderr
    assert "Traceback" not in stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "hard.svm"]
