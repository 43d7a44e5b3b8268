"""What commands refuse: the exit status, the message, and that no file is made or changed."""

import os
import re
from contextlib import chdir
from itertools import islice
from pathlib import Path

import pytest
from commandline import failure, larank

from larank import LinearMulticlassSVC, SemanticParser, SequenceTagger
from larank.ambiguous.childworld import make_child_world
from larank.ambiguous.house import AMBIGUITY, House
from larank.ambiguous.meanings import write_examples
from larank.ambiguous.stories import write_story
from larank.ambiguous.universetable import read_table, write_table
from larank.data import models

SVM = "0 1:3 4:1\n1 2:3 4:2\n2 3:3 4:3\n"
WORDS = "the DT B-NP\ndog NN I-NP\nsees VB B-VP\n\n"
TEXTS = {
    "train.svm": SVM * 10,
    "test.svm": SVM,
    "one.svm": "1 1:1\n1 1:2\n",
    "wide.svm": "0 5:1\n",
    "zero.svm": "0 0:1 1:1\n1 1:1\n" * 500,
    "bad.svm": "1 1:2\n2 1:1\n1 1:2 oops\n",
    "bad_late.svm": SVM * 667 + "1 1:1 oops\n" + SVM * 300,
    "letters.csv": "3,0,0,1,a\n0,3,0,2,b\n0,0,3,3,c\n" * 10,
    "numbers.csv": "3,0,0,1,0\n0,3,0,2,1\n0,0,3,3,2\n",
    "narrow.csv": "3,0,0,a\n0,3,0,b\n0,0,3,c\n",
    "text.larank": "hello",
    "empty.larank": "",
    "zeros.larank": "\0" * 100,
    "words.txt": WORDS * 12,
    "narrow.txt": "the\n",
    "bare.txt": "the DT\n",
    "other.txt": "the DT X\n",
    "wide.txt": " ".join("a" * 5000),
    "bare_story.txt": "john sleeps\n",
    "own.csv": "concept,kind,location:room\njohn,actor,kitchen\nkitchen,room,\n",
}
SMALL = "--hidden-size 5 --embedding-size 2 --window 3 --max-iter 1"
MODELS = [
    "train train.svm model.larank",
    "train letters.csv letters.larank",
    "tag train words.txt words.larank",
    f"label-concepts train house.csv house.txt house.larank {SMALL}",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of right and wrong files for every command, with a model of each kind."""
    folder = tmp_path_factory.mktemp("files")
    sentences, _ = make_child_world(60, 1, level=1, random_state=0)
    story = House(random_state=0, ambiguity=AMBIGUITY)
    with chdir(folder):
        for name, text in TEXTS.items():
            Path(name).write_text(text)
        write_examples("child.txt", sentences)
        write_table("house.csv", story.universe, relations=["location", "containedby"])
        write_story("house.txt", islice(story, 20), read_table("house.csv").universe)
        Path("larger.csv").write_text(f"{Path('house.csv').read_text()}bob,actor,,,\n")
        for command in MODELS:
            larank(command, "--quiet")
        models.save(SemanticParser(random_state=0).fit(sentences), "child.larank")
        models.save(LinearMulticlassSVC().fit([[0.0], [1.0]], [0, 1]), "linear.larank")
        models.save(SequenceTagger().fit([[{"a": 1}, {"b": 2}]], [["A", "B"]]), "features.larank")
        Path("cut.larank").write_bytes(Path("model.larank").read_bytes()[:-40])
        os.mkfifo("pipe.txt")
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


TRAIN, SGD = "train train.svm new.larank", "new.larank --algorithm sgd --memory-limit 1e4 -q"
LABEL = "label-concepts train house.csv house.txt"
ALGORITHM_OPTIONS = [
    ("sdm --kernel rbf", "--kernel is not an option of this algorithm; --algorithm larank or mcsvm or lasvm or "),
    ("sdm --stop epochs", "'epochs' is not one of 'gap', 'violation'"),
    ("mcsvm --stop gap", "--stop is not an option of this algorithm; --algorithm sdm has it"),
    ("mcsvm --formulation one-vs-rest", "'one-vs-rest' is not one of 'crammer-singer', 'weston-watkins'"),
    ("mcsvm --solver active-set --epsilon 5", "--epsilon is used only with --solver published, got active-set"),
    ("lasvm --tol 0.1 --no-finish", "'--finish': must be True with tol=0.1, because"),
    ("larank --no-shrinking", "--no-shrinking is not an option of this algorithm; --algorithm sdm has it"),
    ("larank --tol 0.1 --max-support 9", "'--max-support': is used only in one pass"),
    (
        "larank --schedule fixed --device cpu",
        "--device cannot be combined with --solver or the switches of another solver",
    ),
    ("larank --n-reprocess -1", "'--n-reprocess': must be an integer >= 0 or None; got -1"),
    ("larank --operations old,optimize", "'--operations': must contain 'new'; got"),
    ("larank --gamma 0", "'--gamma': must be a finite number > 0, 'scale' or 'auto'; got 0.0"),
    ("larank --gamma wide", "'--gamma': must be a finite number > 0, 'scale' or 'auto'; got 'wide'"),
    ("larank --n-jobs 0", "'--n-jobs': must be None or an integer other than 0; got 0"),
    ("primal --loss log_loss --width 1", "--width is used only with --loss smoothed_hinge, got log_loss"),
    ("sgd --checkpoint state", "LinearSGDClassifier has no checkpoints"),
    ("crammer", "'--algorithm': must be one of sdm, larank, "),
]
TAG_OPTIONS = [
    ("--solver perceptron --tol 0.1", "'--tol': must be None with solver='perceptron', which does not train to a "),
    ("--average --tol 0.1", "'--tol': must be None with average=True"),
    ("--inference exact --history predicted", "--history is used only with --inference greedy, got exact"),
    (
        "--inference greedy --history predicted --tol 0.1",
        "'--tol': must be None with inference=Greedy(history='predicted')",
    ),
    ("--solver perceptron --n-reprocess 2", "--n-reprocess is used only with --solver larank, got perceptron"),
    ("--order 256", "'--order': must be an integer from 0 to 255; got 256"),
    ("-C 0", "'-C': must be a finite number > 0; got 0.0"),
    ("--inference beam", "--inference"),
    ("--resume", "--resume needs --checkpoint"),
]
WRONG_VALUES = ["-C 0", "-C -1", "-C nan", "-C much", "--tol 0", "--max-iter 0", "--time-limit 0", "--seed -1"]
WRONG_VALUES += ["--features 0", "--formulation crammer", "--stop never", "--class-weight heavy", "--loud"]
OF_TABLES = ["--raw", "--label a", "--column a=text", "--delimiter ;"]
NAMED_TWICE = [
    "train train.svm train.svm",
    "train train.svm test.svm --test test.svm",
    "train train.svm r.html --report r.html",
    "predict model.larank test.svm model.larank",
    "predict model.larank test.svm test.svm",
    "tag train words.txt words.txt",
    "tag apply words.larank words.txt --output words.txt",
    "parse apply child.larank child.txt --output child.txt",
    "label-concepts train house.csv house.txt house.txt",
    "label-concepts apply house.larank house.csv house.txt --output house.txt",
]
USAGE = [
    *((command, "Missing argument") for command in ("train", "train a.svm", "predict", "eval m")),
    ("trian", "No such command 'trian'"),
    (f"{TRAIN} one argument too many", "unexpected extra argument(s) (one argument too many)"),
    (f"{TRAIN} --resume", "--resume needs --checkpoint"),
    *((f"{TRAIN} {options}", options.split()[0]) for options in WRONG_VALUES),
    *((f"{TRAIN} {options}", "cannot act") for options in OF_TABLES),
    *((f"{TRAIN} --algorithm {options}", said) for options, said in ALGORITHM_OPTIONS),
    *((f"tag train words.txt new.larank {options}", said) for options, said in TAG_OPTIONS),
    *((command, "named twice") for command in NAMED_TWICE),
    *(
        (f"{train} new.larank {option}", option.split()[0])
        for train in ("parse train child.txt", LABEL)
        for option in ("--window 2", "--strategy backwards")
    ),
]


@pytest.mark.parametrize(("command", "said"), USAGE)
def test_wrong_usage_is_refused(command, said, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = contents(folder)
    shown = " ".join(larank(command, code=2).stderr.split())
    assert "Usage: " in shown
    assert said in shown
    assert contents(folder) == before


MISSING = [
    "train gone.svm new.larank",
    "train train.svm new.larank --test gone.svm",
    "predict model.larank gone.svm",
    "predict gone.larank test.svm",
    "eval gone.larank test.svm",
    "info gone.larank",
    "tag train gone.txt new.larank",
    "parse train gone.txt new.larank",
    "label-concepts train gone.csv house.txt new.larank",
]
NO_MODEL = ["predict {} test.svm", "eval {} test.svm", "info {}", "tag apply {} words.txt", "parse apply {} child.txt"]
NO_MODEL += ["label-concepts apply {} house.csv house.txt"]
OF_EXAMPLES = ["predict model.larank {}", "eval model.larank {}", "train train.svm new.larank --test {}"]
TOO_WIDE = ["tag train wide.txt new.larank", "tag eval words.larank wide.txt", "tag apply words.larank wide.txt"]
FIVE, CELL = "has 5 features, the model 4; train with --features 5", "column 'column 4': 'a' is not a number"
NONE_OF = r"none of its labels \(0, 1, 2\)"
BOB = "universes has 'bob', which was not there in training"
FAILURES = [
    *((command, r"gone\.\w+: [Nn]o such file") for command in MISSING),
    *(
        (command.format(f"{name}.larank"), rf"{name}\.larank.*(is not a larank model|cut short)")
        for command in NO_MODEL
        for name in ("text", "empty", "zeros", "cut")
    ),
    ("train train.svm test.svm", r"test\.svm exists and is not a larank model"),
    ("tag train words.txt bare.txt", r"bare\.txt exists and is not a larank model"),
    (f"{LABEL} own.csv", r"own\.csv exists and is not a larank model"),
    ("train train.svm no/new.larank", "there is no folder"),
    ("train train.svm new.larank --report no/r.html", "there is no folder"),
    ("tag train words.txt no/new.larank", "there is no folder"),
    ("train train.svm .", "not a regular file"),
    ("predict model.larank test.svm /dev/null", "not a regular file"),
    *((command.format("bad.svm"), r"bad\.svm, line 3") for command in ("train {} new.larank", *OF_EXAMPLES[:2])),
    ("train one.svm new.larank", "one class"),
    *((command.format("wide.svm"), rf"wide\.svm {FIVE}$") for command in OF_EXAMPLES),
    ("predict letters.larank narrow.csv", rf"narrow\.csv, line 1, {CELL}(?!.*--features)"),
    ("eval letters.larank numbers.csv", rf"numbers\.csv: {NONE_OF} is a class of the model \(a, b, c\)"),
    ("train letters.csv new.larank --test numbers.csv -q", rf"numbers\.csv: {NONE_OF}"),
    (f"train bad_late.svm {SGD} --features 3", "line 1: index 4 is out of range for n_features=3"),
    (f"train zero.svm {SGD}", "line 1: index 0"),
    (f"train bad_late.svm {SGD}", r"bad_late\.svm, line 2002"),
    *((command, r"wide\.txt, line 1: more than 1000 columns in ") for command in TOO_WIDE),
    ("tag apply words.larank narrow.txt", r"has 1 columns; the model takes 2 \(word, pos\)"),
    ("tag eval words.larank bare.txt", r"has no labels, only the columns of the model \(word, pos\)"),
    ("tag eval words.larank other.txt", r"none of its labels \(X\) is a class of the model \(B-NP, B-VP, I-NP\)"),
    ("tag apply words.larank bare.txt --label 1", "--label 1"),
    ("tag train words.txt new.larank --label 9 -q", "--label 9: "),
    ("tag apply words.larank words.txt --label 9", "--label 9: "),
    ("tag train words.txt new.larank --test bare.txt", "has no labels"),
    ("tag train words.txt new.larank --templates nothing", "come along: general, words, chunking"),
    ("tag train pipe.txt new.larank -q", "is a pipe or a device"),
    ("tag apply words.larank pipe.txt", "is a pipe or a device"),
    ("tag apply linear.larank words.txt", "holds a LinearMulticlassSVC"),
    ("tag eval features.larank words.txt", "tokens that are not text"),
    ("predict words.larank words.txt", "holds a SequenceTagger, which is no classifier of examples; `larank tag`"),
    ("parse eval child.larank child.txt", "must have one meaning, the right one"),
    ("parse apply linear.larank child.txt", "holds a LinearMulticlassSVC"),
    ("label-concepts apply linear.larank house.csv house.txt", "holds a LinearMulticlassSVC"),
    ("label-concepts eval house.larank house.csv bare_story.txt", "line 1: the sentence 'john sleeps' has no concepts"),
    ("label-concepts apply house.larank own.csv bare_story.txt", "universes has the relations location; "),
    ("label-concepts apply house.larank larger.csv house.txt", rf"larger\.csv does not fit.*{BOB}"),
    (f"{LABEL} new.larank {SMALL} -q --relations owner", "relations has 'owner'; universes has location, containedby"),
]


@pytest.mark.parametrize(("command", "said"), FAILURES)
def test_a_failure_is_one_line(command, said, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = contents(folder)
    assert re.search(said, failure(command))
    assert contents(folder) == before
