"""No estimator crashes, changes its model or leaves files behind where memory or space is short."""

import shutil
import sys

import pytest

from checks import CASES
from tools.hostile import outofmemory


@pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("cc"), reason="needs glibc and a compiler")
def test_out_of_memory_is_an_error_that_leaves_every_model_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in outofmemory.FILES.items():
        (tmp_path / name).write_bytes(content)
    estimators = [case for case in CASES if not case.variant]  # `make hostile` has the variants too
    exec(outofmemory.script(1, 0, estimators), {})
