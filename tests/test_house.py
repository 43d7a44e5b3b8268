"""The rule of the house: a file says in its first line what it is for, and folders of the core look downwards only."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = sorted(path for ending in ("*.hpp", "*.cpp") for path in (ROOT / "core").rglob(ending))
MODULES = sorted((ROOT / "src").rglob("*.py"))

# From the top; what stands together does not know of each other. The units of `simd` are compiled from what the folders
# above declare for them, by unit.cpp alone.
LAYERS = [
    {"bindings"},
    {"ambiguous"},
    {"linear", "kernel", "chain", "text"},
    {"structured"},
    {"blocks", "data", "training"},
    {"memory", "simd"},
]


def named(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", CORE, ids=named)
def test_a_file_of_the_core_says_first_what_it_is_for(path):
    first = path.read_text().partition("\n")[0]
    assert re.match(r"// [A-Z].{9,}", first), first


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_says_first_what_it_is_for(path):
    purpose = ast.get_docstring(ast.parse(path.read_text()))
    assert purpose, "there is no docstring"
    assert re.match(r".{10,}[.:]$", purpose.partition("\n")[0]), purpose.partition("\n")[0]


def test_no_two_classes_have_one_name_but_those_of_dask():
    found = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(named(path))
    again = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert set(again) == {"LinearMulticlassSVC", "LinearSGDClassifier"}


@pytest.mark.parametrize("path", [path for path in CORE if path.name != "unit.cpp"], ids=named)
def test_a_file_of_the_core_includes_its_own_folder_and_those_below(path):
    folder = path.parent.name
    (level,) = (n for n, layer in enumerate(LAYERS) if folder in layer)
    below = set().union({folder}, *LAYERS[level + 1 :])
    included = re.findall(r'#include "(\w+)/', path.read_text())
    assert set(included) <= below
