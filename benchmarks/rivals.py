"""Which of the libraries to compare with are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol


class Rival(Protocol):
    """An adapter, as far as this file cares: `requires` is the module it imports."""

    @property
    def requires(self) -> str: ...


def installed(rival: Rival) -> bool:
    """Whether the module this adapter drives can be found."""
    try:
        return importlib.util.find_spec(rival.requires) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def usable(names: Iterable[str], rivals: Mapping[str, Rival], log: Callable[[str], None]) -> list[str]:
    """Those whose library is installed."""
    present = []
    for name in names:
        if installed(rivals[name]):
            present.append(name)
        else:
            log(f"{name}: left out, {rivals[name].requires} is not installed")
    return present
