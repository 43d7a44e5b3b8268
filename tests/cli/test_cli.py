"""The `larank` command: what it writes, where it writes it, and how it says that it failed."""

import errno
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import chdir, redirect_stdout, suppress
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from commandline import failure, larank, status_of
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.svm import SVC

from fulldisk import full_disk
from larank import SDM, LaRank, LaSVM, SmoothedHinge
from larank.cli.options import ALGORITHMS, classifier
from larank.data import models
from larank.declare import defaults

COMMANDS = ["train", "predict", "eval", "info", "demo"]
CENTRES = np.array([[3.0, 0, 0, 1], [0, 3.0, 0, 1], [0, 0, 3.0, 1]])
FILES = ["model.larank", "test.svm", "text.larank", "train.svm"]
MAIN = [sys.executable, "-c", "from larank.cli import main; main()"]


def examples(n=90, seed=0, noise=1.0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return CENTRES[y] + noise * random.normal(size=(n, 4)), y


X, Y = examples()
TEST_X, TEST_Y = examples(seed=1)
TEST_X = TEST_X.round(6)


def svmlight(name, X, y):
    lines = [f"{b} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(a)) for a, b in zip(X, y, strict=True)]
    Path(name).write_text("\n".join(lines) + "\n")


def csv(name, X, y):
    Path(name).write_text("".join(",".join(map(repr, map(float, a))) + f",{b}\n" for a, b in zip(X, y, strict=True)))


def labels_of(model, X):
    return [str(label) for label in models.load(model).predict(X)]


def rows_of(*command):
    """The words of each line that a command writes."""
    return [line.split() for line in larank(*command).stdout.splitlines()]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with examples, a model of them, and a model of a dense file with the labels a, b, c."""
    folder = tmp_path_factory.mktemp("files")
    with chdir(folder):
        svmlight("train.svm", X, Y)
        svmlight("test.svm", TEST_X, TEST_Y)
        csv("train.csv", X, np.array(["a", "b", "c"])[Y])
        larank("train train.svm model.larank --quiet")
        larank("train train.csv text.larank --quiet")
        os.remove("train.csv")
    return folder


@pytest.fixture(autouse=True)
def here(files, tmp_path, monkeypatch):
    """Every test has a copy of the files where it runs."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def test_help_lists_every_command_with_the_beginning_of_its_own_help():
    assert larank("--version").stdout.startswith("larank ")
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


def test_train_writes_a_model_and_shows_its_certificate():
    result = larank("train train.svm m.larank --test test.svm")
    error = np.mean(models.load("m.larank").predict(TEST_X) != TEST_Y)
    for piece in (f"{error:.2%}", "converged", "duality gap", "support patterns", "model written to m.larank"):
        assert piece in result.stdout
    assert "larank: training" in result.stderr
    quiet = larank("train train.svm n.larank --test test.svm --quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_options_left_away_keep_the_defaults_shown(algorithm):
    text = " ".join(larank(f"train --algorithm {algorithm} --help").stdout.partition("Options:")[2].split())
    larank(f"train train.svm m --algorithm {algorithm} --quiet")
    estimator = models.load("m")
    values = defaults(classifier(algorithm))
    assert type(estimator) is classifier(algorithm)
    assert estimator.get_params() == values | {"random_state": 0}
    for name in values.keys() & {"kernel", "formulation", "loss", "stop", "degree", "n_steps", "n_reprocess"}:
        option = text[text.index(f"--{name.replace('_', '-')} ") :]
        assert option[option.index("[default: (") :].startswith(f"[default: ({values[name]})")


def test_help_is_of_the_algorithm_that_is_named():
    text = larank("train --help").stdout
    assert "--intercept-scaling <float>" in text
    assert "--kernel" not in text
    for option in ("--algorithm tracking", "--algorithm=tracking"):
        text = larank(f"train {option} --help").stdout
        assert "--tracking-algorithm <process-reprocess|simple>" in text
        assert "--intercept-scaling" not in text


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_parameter_that_a_text_can_be_is_an_option(algorithm):
    text = larank(f"train --algorithm {algorithm} --help").stdout
    for name, default in defaults(classifier(algorithm)).items():
        if name in ("label_costs", "label_kernel", "warm_start", "verbose", "random_state") or default == algorithm:
            continue  # the solver of LaRank is LaRank
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
    ("huller", "--kernel linear --tol 0.5", {"kernel": "linear", "tol": 0.5}),
    ("tracking", "--tracking-algorithm simple --n-steps 3 -C 2", {"algorithm": "simple", "n_steps": 3, "C": 2.0}),
    ("perceptron", "--average --margin 0.5", {"average": True, "margin": 0.5}),
    ("passive-aggressive", "-C 0.5 --max-iter 2", {"C": 0.5, "max_iter": 2}),
    ("larank", "--operations new,old --tau 0.5", {"solver": LaRank(operations=("new", "old"), tau=0.5)}),
    (
        "larank",
        f"{OF_POLY} --max-iter 2 --schedule fixed --n-reprocess 3",
        {"max_iter": 2, "solver": LaRank(schedule="fixed", n_reprocess=3), **POLY, **BALANCED},
    ),
    ("larank", "--tol 0.01", {"tol": 0.01, "gamma": "scale"}),
    ("lasvm", "--no-finish --delta-max 0.5", {"finish": False, "solver": LaSVM(delta_max=0.5)}),
    ("lasvm", "--selection active --tau 0.01", {"selection": "active", "solver": LaSVM(tau=0.01)}),
    ("mcsvm", "--solver published", {"solver": "published"}),
    (
        "mcsvm",
        f"{OF_POLY} --tol 0.01 --formulation weston-watkins --max-iter 500 --intercept",
        {"tol": 0.01, "formulation": "weston-watkins", "max_iter": 500, "fit_intercept": True, **POLY, **BALANCED},
    ),
    ("primal", "--softmax-gamma inf", {"softmax_gamma": np.inf}),
    ("primal", "--loss smoothed_hinge --width 0.5", {"loss": SmoothedHinge(width=0.5)}),
    ("sgd", "--sgd-algorithm sgdqn --max-iter 2 --no-shuffle", {"algorithm": "sgdqn", "max_iter": 2, "shuffle": False}),
    ("sdm", "--no-shrinking --no-cooling", {"solver": SDM(shrinking=False, cooling=False)}),
    ("sdm", "--intercept-scaling 2 --no-shrinking", {"intercept_scaling": 2.0, "solver": SDM(shrinking=False)}),
    ("sdm", "--formulation weston-watkins --max-iter 500", {"formulation": "weston-watkins", "max_iter": 500}),
    ("sdm", "--formulation one-vs-rest --stop violation", {"formulation": "one-vs-rest", "stop": "violation"}),
    ("sdm", f"-C 0.25 --tol 0.01 --no-intercept {BALANCING}", {"C": 0.25, "fit_intercept": False, **BALANCED}),
]


@pytest.mark.parametrize(("algorithm", "options", "expected"), OPTIONS)
@pytest.mark.filterwarnings("ignore:training was ended")
def test_options_reach_the_classifier(algorithm, options, expected):
    larank(f"train train.svm m --algorithm {algorithm} {options} --quiet")
    found = models.load("m").get_params()
    assert {name: found[name] for name in expected} == expected


def test_no_certificate_is_computed_if_none_is_wanted():
    for option, is_exact in (("--certify", True), ("--no-certify", False)):
        larank(f"train train.svm m --algorithm lasvm {option} --quiet")
        assert models.load("m").result_.exact == is_exact


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "larank --kernel linear"])
def test_a_model_of_every_classifier_serves_every_command(algorithm, monkeypatch):
    if algorithm not in ("sdm", "perceptron"):  # their plots are drawn, and the others need as long
        monkeypatch.setattr(Figure, "savefig", lambda figure, buffer, **options: buffer.write("<svg></svg>"))
    result = larank(f"train train.svm m --algorithm {algorithm} --test test.svm --report r.html")
    assert "stopped early" not in result.stderr
    estimator, page = models.load("m"), Path("r.html").read_text()
    name, status = type(estimator).__name__, estimator.result_.status
    predicted = estimator.predict(sparse.csr_matrix(TEST_X))
    error = f"{np.mean(predicted != TEST_Y):.2%}"
    assert f"{name} on train.svm" in page
    if algorithm in ("sdm", "perceptron"):  # one gap, if there is one
        assert set(re.findall(r"[a-z]+ gap(?=</)", page)) == ({"relative gap"} if algorithm == "sdm" else set())
    assert "nan" not in re.sub(r"(?s)<svg.*?</svg>|<style.*?</style>", "", page)
    assert larank("predict m test.svm").stdout.split() == [str(label) for label in predicted]
    assert larank("predict m test.svm --scores").stdout.startswith("label\t0\t1\t2\n")
    assert error in larank("eval m test.svm").stdout
    assert error in result.stdout
    assert status in result.stdout
    information = larank("info m").stdout
    assert all(piece in information for piece in (name, "0, 1, 2", status, getattr(estimator, "kernel", name)))


def test_a_warning_of_finishing_is_shown(monkeypatch):
    monkeypatch.setattr("larank.kernel.lasvm._STEPS_PER_VECTOR", 10)
    random = np.random.default_rng(0)
    svmlight("far.svm", random.normal(loc=100, size=(80, 2)), random.integers(0, 2, 80))
    said = "steps of finishing, 10 for each support vector. Features that are large"
    assert said in larank("train far.svm m --algorithm lasvm --kernel poly --quiet").stderr


def test_a_model_may_be_trained_again():
    Path("m.larank").touch()  # an empty file, as mktemp makes it
    for C in (1, 2):
        larank(f"train train.svm m.larank -C {C} --quiet")
    assert models.load("m.larank").C == 2


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ("--max-iter 1 --tol 1e-12", "max_iter"),
        ("--algorithm sgd --memory-limit 2e3 --time-limit 1e-9", "time_limit"),  # a stream
    ],
)
def test_training_stopped_early_is_saved_with_one_line_for_each_message(options, status):
    lines = larank(f"train train.svm m.larank {options} --quiet").stderr.splitlines()
    stopped = f"larank: stopped early ({status.replace('_', ' ')})"
    assert all(line.startswith(("larank: warning: ", stopped)) for line in lines)
    assert sum(line.startswith(stopped) for line in lines) == 1
    assert "m.larank" in lines[-1]
    assert "duality gap" in lines[-1]
    assert models.load("m.larank").result_.status == status


STREAM = "--algorithm sgd --memory-limit 1e4"


@pytest.mark.parametrize("kind", ["svm", "csv", "svm.gz", "csv.gz"])
def test_a_file_larger_than_a_quarter_of_the_memory_limit_is_a_stream(kind):
    path = Path(f"big.{kind}")
    (svmlight if "svm" in kind else csv)(path, *examples(3000))
    if "gz" in kind:
        path.write_bytes(gzip.compress(path.read_bytes()))
    counted = path.stat().st_size * (4 if "gz" in kind else 1)
    lines, found = {}, []
    for name, limit in (("memory", 4 * counted), ("stream", 4 * counted - 4)):
        result = larank(
            f"train {path} {name} --algorithm sgd --memory-limit {limit} --t0 1000 --max-iter 2 --no-shuffle"
        )
        lines[name] = [line for line in result.stderr.splitlines() if "stream:" in line]
        assert f"model written to {name}" in result.stdout
        model = models.load(name)
        found.append(model[-1] if "csv" in kind else model)  # after the encoder of a table
    said = f"larank: {path} is read as a stream: in memory it might take more than --memory-limit allows"
    assert lines == {"memory": [], "stream": [said]}
    memory, stream = found
    np.testing.assert_allclose(stream.coef_, memory.coef_, atol=1e-9)
    assert memory.result_.exact
    assert not stream.result_.exact
    assert stream.result_.operations["visits"] == memory.result_.operations["visits"] == 6000


def test_other_algorithms_and_archives_are_read_into_memory():
    np.savez("big.npz", **dict(zip("Xy", examples(600), strict=True)))
    svmlight("big.svm", *examples(600))
    limit = 3.9 * os.path.getsize("big.svm")
    for data, algorithm, most in (("big.npz", "sgd", 2000), ("big.svm", "larank", limit)):
        said = larank(f"train {data} m --algorithm {algorithm} --memory-limit {most}").stderr
        assert "stream:" not in said


def test_a_stream_has_a_test_a_report_and_nothing_to_say_if_quiet():
    svmlight("big.svm", *examples(3000))
    result = larank(f"train big.svm m {STREAM} --test test.svm --report r.html")
    error = np.mean(models.load("m").predict(TEST_X) != TEST_Y)
    assert f"{error:.2%}" in result.stdout
    assert 0 < error < 0.2
    assert all(piece in Path("r.html").read_text() for piece in ("3000", "Most confused"))
    quiet = larank(f"train big.svm m {STREAM} --test test.svm --quiet")
    assert quiet.stdout == quiet.stderr == ""


def test_features_and_indices_of_a_stream_are_as_given():
    svmlight("big.svm", *examples(600))
    for options, n_features in (("--features 9", 9), ("--zero-based", 5)):
        larank(f"train big.svm m {STREAM} {options}")
        assert models.load("m").n_features_in_ == n_features


def test_a_test_file_that_is_too_wide_for_a_stream_is_told_of_when_the_model_is_safe():
    X, y = examples(600)
    svmlight("big.svm", X, y)
    svmlight("wide.svm", np.hstack([X, X]), y)
    command = f"train big.svm m {STREAM} --quiet --test wide.svm"
    assert "has 8 features, the model 4; train with --features 8" in failure(command)
    assert models.load("m").n_features_in_ == 4
    larank(f"{command} --features 8")


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
def test_whatever_fails_is_said_in_one_line(error, said, monkeypatch):
    monkeypatch.setattr(models, "save", mock.Mock(side_effect=error))
    assert failure("train train.svm m --quiet") == f"larank: error: {said}"
    assert larank("train train.svm m --quiet --debug", code=1).exception is error


def test_predict_writes_one_label_per_line_and_a_score_for_each_class(monkeypatch):
    f = models.load("model.larank").decision_function(TEST_X)
    labels = larank("predict model.larank test.svm").stdout
    assert labels.splitlines() == labels_of("model.larank", TEST_X)
    result = larank("predict model.larank test.svm labels.txt")
    assert (result.stdout, result.stderr) == ("", "")
    assert Path("labels.txt").read_text() == labels
    scores = larank("predict model.larank test.svm --scores").stdout
    assert scores.startswith("label\t0\t1\t2\n")
    table = np.array([line.split("\t") for line in scores.splitlines()[1:]], dtype=float)
    np.testing.assert_allclose(table[:, 1:], f, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(table[:, 0], np.argmax(f, axis=1))
    monkeypatch.setattr("larank.cli.examples._ROWS_AT_ONCE", 7)
    assert larank("predict model.larank test.svm").stdout == labels
    assert larank("predict model.larank test.svm --scores").stdout == scores


def test_two_classes_have_one_score():
    svmlight("two.svm", X, np.where(Y == 0, -1, 1))
    larank("train two.svm m --quiet")
    heading, *rows = rows_of("predict m two.svm --scores")
    assert heading == ["label", "1"]
    assert all((label == "1") == (float(score) > 0) for label, score in rows)


def test_a_sparse_file_may_have_fewer_features_and_training_may_have_more():
    svmlight("narrow.svm", TEST_X[:, :3], TEST_Y)
    expected = labels_of("model.larank", TEST_X * [1, 1, 1, 0])
    assert larank("predict model.larank narrow.svm").stdout.split() == expected
    larank("eval model.larank narrow.svm")
    svmlight("wide.svm", np.hstack([TEST_X, TEST_X[:, :1]]), TEST_Y)
    for options, n_features in (("--test narrow.svm", 4), ("--test wide.svm --features 5", 5)):
        larank(f"train train.svm m --quiet {options}")
        assert models.load("m").n_features_in_ == n_features


def test_a_prediction_that_does_not_fit_on_the_disk_keeps_the_old_file():
    Path("labels.txt").write_text("old")
    with full_disk(10):
        line = failure("predict model.larank test.svm labels.txt")
    assert "labels.txt: File too large" in line
    assert Path("labels.txt").read_text() == "old"
    assert sorted(os.listdir()) == ["labels.txt", *FILES]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["predict model.larank test.svm", "info model.larank"])
def test_a_full_standard_output_is_named(command, capsys):
    with suppress(OSError), open("/dev/full", "w") as full, redirect_stdout(full):  # closing it fails too
        assert status_of(*command.split()) == 1
    assert "standard output: No space left on device" in capsys.readouterr().err


def test_eval_counts_errors_by_class_and_by_pair():
    svmlight("far.svm", 10 * CENTRES[[0, 0, 0, 1, 1, 2]], [0, 1, 1, 1, 1, 7])
    result = larank("eval model.larank far.svm")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["test", "error", "50.00%"] in rows
    assert ["1", "4", "2", "50.00%"] in rows
    assert ["7", "1", "1", "100.00%"] in rows  # a class the model never saw is always an error
    assert ["1", "0", "2"] in rows
    assert ["7", "2", "1"] in rows
    said = "far.svm: 1 example has a label unknown to the model (7), counted as an error"
    assert result.stderr == f"larank: warning: {said}\n"
    svmlight("odd.svm", 10 * CENTRES[[0, 0, 0, 1]], [0, 8, 7, 8])
    said = "odd.svm: 3 examples have labels unknown to the model (7, 8), counted as errors"
    assert larank("train train.svm m --test odd.svm --quiet").stderr == f"larank: warning: {said}\n"


def test_eval_shows_the_worst_if_there_are_errors():
    svmlight("wrong.svm", 10 * CENTRES, [1, 2, 0])
    svmlight("right.svm", 10 * CENTRES, [0, 1, 2])
    stdout = larank("eval model.larank wrong.svm --top 1").stdout
    assert "Classes by error (1 of 3)" in stdout
    assert "Most confused (1 of 3)" in stdout
    stdout = larank("eval model.larank right.svm").stdout
    assert "0.00%" in stdout
    assert "confused" not in stdout


def test_labels_compare_although_one_file_has_only_numbers():
    csv("mixed.csv", X, np.array(["1", "2", "other"])[Y])
    csv("numbers.csv", 10 * CENTRES[:2], [1, 1])
    larank("train mixed.csv m --quiet")
    rows = rows_of("eval m numbers.csv")
    assert ["1", "2", "1", "50.00%"] in rows
    assert ["1", "2", "1"] in rows


def test_info_shows_what_the_model_is_and_cuts_labels_on_a_terminal_only(monkeypatch):
    stdout = larank("info text.larank").stdout
    assert all(piece in stdout for piece in ("LinearMulticlassSVC", "crammer-singer", "a, b, c", "converged"))
    assert re.search(r"(?m)^attributes\.classes_ +0, 1, 2 *$", larank("info model.larank").stdout)
    svmlight("many.svm", X, np.arange(90) % 30)
    larank("train many.svm m --quiet --tol 0.5")
    assert f"  {', '.join(map(str, range(30)))}\n" in larank("info m").stdout
    monkeypatch.setattr("larank.cli.info.is_terminal", lambda: True)
    assert "  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (30 in all)\n" in larank("info m").stdout


@pytest.mark.parametrize("algorithm", ["larank", "lasvm", "sgd", "perceptron", "tracking"])
def test_info_in_a_pipe_cuts_nothing_and_shows_no_private_state(algorithm):
    column = "a name that is longer than a line of a terminal, " * 3
    cells = "\n".join(f"{i % 5},{i % 3},{i % 2}" for i in range(60))
    Path("a.csv").write_text(f'"{column}",_size,kind\n{cells}\n')
    larank(f"train a.csv m --algorithm {algorithm} --quiet")
    lines = larank("info m").stdout.splitlines()
    names = {line.split("  ")[0] for line in lines}
    columns = {f"encoder.attributes.columns_.{name}" for name in (column.strip(), "_size")}
    assert columns | {"classifier.attributes.classes_"} <= names
    assert f"{column.strip()}, _size" in "".join(lines)
    assert not [name for name in names if "attributes._" in name]
    assert "…" not in "".join(lines)


class QuickSVC(SVC):
    """The rival of the demo, trained with few examples; its figures are not checked here."""

    def fit(self, X, y):
        return super().fit(X[:1000], y[:1000])


def test_demo_compares_and_writes_model_and_report(monkeypatch):
    monkeypatch.setattr("larank.cli.demo.SVC", QuickSVC)
    lines = larank("demo --output new/folder").stdout.splitlines()
    names = ("LaRank, one pass", "LaRank x1, paper", "scikit-learn SVC", "larank, linear")
    rows = {name: line for line in lines for name in names if line.strip().startswith(name)}
    assert len(rows) == len(names)
    # The paper's figures, and ranges around them: the one pass of ours visits the examples in another order.
    assert all(piece in rows["LaRank x1, paper"] for piece in ("2.80%", "5226", "55M", "940"))
    ours = re.search(r"([\d.]+)% +(\d+) +(\d+)M +(\d+) +[\d.]+ +[\d.]+", rows["LaRank, one pass"])
    for figure, least, most in zip(ours.groups(), (0, 5000, 20, 1000), (3.2, 5460, 80, 12000), strict=True):
        assert least <= float(figure) <= most
    assert sorted(os.listdir("new/folder")) == ["model.larank", "report.html"]
    model = models.load("new/folder/model.larank")
    assert type(model).__name__ == "LaRankClassifier"
    assert len(model.classes_) == 26
    assert "LETTER" in Path("new/folder/report.html").read_text()


def process(command):
    return subprocess.Popen(
        [*MAIN, *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with SIGINT ignored; the child must be able to hear it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(
    ("command", "code", "traceback"),
    [
        ("--version", 0, False),
        ("info /gone.larank", 1, False),
        ("info /gone.larank --debug", 1, True),
        ("--nonsense", 2, False),
    ],
)
def test_the_process_has_an_exit_status_and_a_traceback_if_asked(command, code, traceback, capsys):
    assert status_of(*command.split()) == code
    assert ("Traceback" in capsys.readouterr().err) == traceback


def test_a_closed_pipe_is_no_failure_to_shout_about():
    child = process("predict model.larank test.svm")
    child.stdout.close()
    assert child.stderr.read() == ""
    child.wait(timeout=60)


def endless_training():
    """A training that ends by a signal only, and has begun: a checkpoint is there."""
    svmlight("hard.svm", *examples(3000, noise=8.0))
    endless = f"--tol 1e-15 --max-iter {10**9} --time-limit 200 -C 1000"
    child = process(f"train hard.svm m.larank {endless} --checkpoint checkpoint --every 0")
    while not os.path.exists("checkpoint"):
        assert child.poll() is None
        time.sleep(0.01)
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_training_saves_what_it_has(number):
    child = endless_training()
    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert stderr.startswith("larank: training ")
    assert "larank: stopped early (interrupted); " in stderr
    assert "Traceback" not in stderr
    assert "interrupted" in stdout
    assert models.load("m.larank").result_.status == "interrupted"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_before_training_ends_the_command_at_once(number):
    os.mkfifo("pipe.svm")  # nobody writes into it
    child = process("train pipe.svm m.larank")
    with open("pipe.svm", "wb"):  # opens once the command reads; its end wakes a read that began after the signal
        child.send_signal(number)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert stderr == "larank: interrupted\n"
    assert sorted(os.listdir()) == sorted(["pipe.svm", *FILES])


def test_a_second_signal_ends_the_command_at_once_and_leaves_files_as_they_were():
    child = endless_training()
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):  # so both are there when it goes on
        child.send_signal(number)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "larank: interrupted\n" in stderr
    assert "Traceback" not in stderr
    assert sorted(os.listdir()) == ["checkpoint", "hard.svm", *FILES]
