"""Commands that start quickly: scikit-learn without two packages that it imports and that they do not need."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


def import_scikit_learn() -> None:
    """Import scikit-learn's base, but not pandas and scipy.stats.

    They take half of the time of a short command. `sklearn.utils.fixes` imports both; it looks for functions of
    scipy.stats when it is asked for them, through scipy, which then imports it, and for none of pandas. Should another
    version need more, it is imported as ever.
    """
    stand_ins = {"pandas": None, "scipy.stats": ModuleType("scipy.stats")}
    missing = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    if "sklearn" in sys.modules:
        return
    sys.modules.update(missing)  # type: ignore[arg-type]  # None is how Python says that a module is not there
    try:
        import_module("sklearn.utils.fixes")
    except ImportError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
            del sys.modules[name]
    finally:
        for name in missing:
            del sys.modules[name]
        vars(sys.modules.get("scipy", ModuleType("scipy"))).pop("stats", None)
