"""Large-margin learning at scale: multiclass SVMs with a duality-gap certificate on every model."""

from __future__ import annotations

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larank.active import ActiveLearner
    from larank.binary.huller import HullerClassifier
    from larank.binary.lasvm import LaSVMClassifier
    from larank.binary.perceptrons import KernelPassiveAggressive, KernelPerceptron
    from larank.binary.tracking import TrackingSVC
    from larank.multiclass.larank import LaRankClassifier
    from larank.multiclass.mcsvm import MulticlassSVC
    from larank.multiclass.published import Published
    from larank.multiclass.sdm import LinearMulticlassSVC
    from larank.structured.model import StructuredModel
    from larank.structured.multiclass import MulticlassModel
    from larank.structured.svc import StructuredSVC
    from larank.structured.tagger import SequenceTagger

__all__ = [
    "ActiveLearner",
    "HullerClassifier",
    "KernelPassiveAggressive",
    "KernelPerceptron",
    "LaRankClassifier",
    "LaSVMClassifier",
    "LinearMulticlassSVC",
    "MulticlassModel",
    "MulticlassSVC",
    "Published",
    "SequenceTagger",
    "StructuredModel",
    "StructuredSVC",
    "TrackingSVC",
    "__version__",
]

__version__ = version("larank")

_HOME = {
    "ActiveLearner": "larank.active",
    "HullerClassifier": "larank.binary.huller",
    "KernelPassiveAggressive": "larank.binary.perceptrons",
    "KernelPerceptron": "larank.binary.perceptrons",
    "LaRankClassifier": "larank.multiclass.larank",
    "LaSVMClassifier": "larank.binary.lasvm",
    "LinearMulticlassSVC": "larank.multiclass.sdm",
    "MulticlassModel": "larank.structured.multiclass",
    "MulticlassSVC": "larank.multiclass.mcsvm",
    "Published": "larank.multiclass.published",
    "SequenceTagger": "larank.structured.tagger",
    "StructuredModel": "larank.structured.model",
    "StructuredSVC": "larank.structured.svc",
    "TrackingSVC": "larank.binary.tracking",
}


def __getattr__(name: str) -> Any:
    """Import an estimator when it is first asked for, so that each part of the library can be used on its own."""
    if name not in _HOME:
        raise AttributeError(f"module 'larank' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
