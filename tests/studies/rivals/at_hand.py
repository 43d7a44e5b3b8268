"""Solvers as parameters of tests; those whose library is not installed are skipped."""

import pytest

from studies.rivals.libraries import installed


def solvers(entries, wanted=None):
    """Return the names of these solvers, or of those wanted."""
    return [
        pytest.param(name, marks=pytest.mark.skipif(not installed(entries[name]), reason=entries[name].requires))
        for name in wanted or entries
    ]
