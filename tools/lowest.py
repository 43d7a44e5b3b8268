"""The command `python -m tools.lowest`: print a constraint for each lower bound of a dependency in `pyproject.toml`.

`make lowest` installs exactly these versions and runs the tests, because a bound is a promise.
"""

import re
import tomllib
from pathlib import Path

EXTRAS = ("plot", "tables", "dask")
INDIRECT = ("pandas==2.1.*", "pyarrow==14.*")
"""Releases from the time of the bounds: newer ones do not work with NumPy 1.26."""
_BOUND = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?>=([\d.]+)$")


def constraints(project: dict) -> list[str]:
    """Return a constraint such as "numpy==1.26.*" for each dependency, with those of the extras that users install."""
    given = [*project["dependencies"], *(one for extra in EXTRAS for one in project["optional-dependencies"][extra])]
    bounds = [_BOUND.match(one) for one in given]
    assert all(bounds), f"every dependency must be of the form name>=version, got {given}"
    return [f"{name}=={version}.*" for name, version in (bound.groups() for bound in bounds)] + list(INDIRECT)


if __name__ == "__main__":
    print("\n".join(constraints(tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"])))
