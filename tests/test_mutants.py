"""The runner of mutants tells a fault that a test notices from a change that no test can notice."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.mutants.__main__ import ROOT, Tree, examine, place_of, with_all

QUICK = "tests/training/test_training.py::test_the_certificate_of_an_outcome"
GAP = {
    "id": "certificate-0",
    "file": "src/larank/training/result.py",
    "line": '"""Primal minus dual objective: at most this far from the optimum."""',
    "old": "self.primal - self.dual",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    tree = Tree(tmp_path_factory.mktemp("mutants"))
    tree.copy([])
    tree.link(*find_spec("larank").submodule_search_locations)
    return tree
