"""A source distribution has every file of the repository, and a wheel the package and nothing else."""

import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WHEELS = os.environ.get("LARANK_WHEELS", "")
"""The folder in which `make nightly` builds a wheel; the gate has no time for a second build."""


@pytest.fixture(scope="module")
def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    if listed.returncode:
        pytest.skip("the files of the repository are known in a git checkout only")
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def untracked():
    others = ["git", "ls-files", "--others", "--exclude-standard"]
    return set(subprocess.run(others, cwd=ROOT, capture_output=True, text=True, timeout=60).stdout.splitlines())


def test_the_source_distribution_has_the_files_of_the_repository(tracked, tmp_path, monkeypatch):
    build = pytest.importorskip("scikit_build_core.build")
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build.build_sdist(str(tmp_path))) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert packed - untracked() == {name for name in tracked if not name.startswith(".ci/")} | {"PKG-INFO"}


@pytest.mark.skipif(not WHEELS, reason="LARANK_WHEELS names no folder; `make nightly` builds a wheel")
def test_the_wheel_has_the_package_its_core_and_its_licence(tracked):
    (wheel,) = Path(WHEELS).glob("larank-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/larank/")}
    built = {name for name in names - package if ".dist-info/" not in name}
    assert package <= names
    assert {re.sub(r"\.cpython.*", ".so", name) for name in built} == {"larank/_core.so", "larank/_core.pyi"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
