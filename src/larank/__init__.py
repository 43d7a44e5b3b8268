"""Large-margin learning at scale: multiclass SVMs with a duality-gap certificate on every model."""

from __future__ import annotations

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larank._core import MemoryLimitError
    from larank.active import ActiveLearner
    from larank.ambiguous.classifier import AmbiguousClassifier, Regret
    from larank.ambiguous.concepts import ConceptLabeler
    from larank.ambiguous.parser import SemanticParser
    from larank.data.models import load, save
    from larank.declare import ParameterError
    from larank.kernel.exact import MulticlassSVC
    from larank.kernel.huller import HullerClassifier
    from larank.kernel.larank import LaRankClassifier
    from larank.kernel.lasvm import LaSVM, LaSVMClassifier
    from larank.kernel.perceptrons import KernelPassiveAggressive, KernelPerceptron
    from larank.kernel.published import Published
    from larank.kernel.tracking import TrackingSVC
    from larank.linear.labelkernel import distance_label_kernel, tree_label_kernel
    from larank.linear.primal import PrimalMulticlassSVC, SmoothedHinge
    from larank.linear.sdm import SDM, LinearMulticlassSVC
    from larank.linear.sgd import LinearSGDClassifier
    from larank.maps import KernelPCAMap, PivotedCholeskyMap
    from larank.parameters import BlockSteps, LaRank
    from larank.search import PathSearchCV
    from larank.sequence.inference import Greedy
    from larank.sequence.tagger import SequenceTagger
    from larank.structured.model import StructuredModel
    from larank.structured.multiclass import MulticlassModel
    from larank.structured.svc import StructuredSVC
    from larank.tables.encoder import TableEncoder
    from larank.training import CertificateWarning, CheckpointWarning, Result, TrainingWarning, on_interrupt

__all__ = [
    "SDM",
    "ActiveLearner",
    "AmbiguousClassifier",
    "BlockSteps",
    "CertificateWarning",
    "CheckpointWarning",
    "ConceptLabeler",
    "Greedy",
    "HullerClassifier",
    "KernelPCAMap",
    "KernelPassiveAggressive",
    "KernelPerceptron",
    "LaRank",
    "LaRankClassifier",
    "LaSVM",
    "LaSVMClassifier",
    "LinearMulticlassSVC",
    "LinearSGDClassifier",
    "MemoryLimitError",
    "MulticlassModel",
    "MulticlassSVC",
    "ParameterError",
    "PathSearchCV",
    "PivotedCholeskyMap",
    "PrimalMulticlassSVC",
    "Published",
    "Regret",
    "Result",
    "SemanticParser",
    "SequenceTagger",
    "SmoothedHinge",
    "StructuredModel",
    "StructuredSVC",
    "TableEncoder",
    "TrackingSVC",
    "TrainingWarning",
    "__version__",
    "distance_label_kernel",
    "load",
    "on_interrupt",
    "save",
    "tree_label_kernel",
]

__version__ = version("larank")

_HOME = {
    "ActiveLearner": "larank.active",
    "AmbiguousClassifier": "larank.ambiguous.classifier",
    "BlockSteps": "larank.parameters",
    "CertificateWarning": "larank.training",
    "CheckpointWarning": "larank.training",
    "ConceptLabeler": "larank.ambiguous.concepts",
    "Greedy": "larank.sequence.inference",
    "HullerClassifier": "larank.kernel.huller",
    "KernelPCAMap": "larank.maps",
    "KernelPassiveAggressive": "larank.kernel.perceptrons",
    "KernelPerceptron": "larank.kernel.perceptrons",
    "LaRank": "larank.parameters",
    "LaRankClassifier": "larank.kernel.larank",
    "LaSVM": "larank.kernel.lasvm",
    "LaSVMClassifier": "larank.kernel.lasvm",
    "LabellingRecord": "larank.active.record",
    "LinearMulticlassSVC": "larank.linear.sdm",
    "LinearSGDClassifier": "larank.linear.sgd",
    "MemoryLimitError": "larank._core",
    "MulticlassModel": "larank.structured.multiclass",
    "MulticlassSVC": "larank.kernel.exact",
    "ParameterError": "larank.declare",
    "PathSearchCV": "larank.search",
    "PivotedCholeskyMap": "larank.maps",
    "PrimalMulticlassSVC": "larank.linear.primal",
    "Published": "larank.kernel.published",
    "Regret": "larank.ambiguous.classifier",
    "Result": "larank.training",
    "SDM": "larank.linear.sdm",
    "SemanticParser": "larank.ambiguous.parser",
    "SequenceTagger": "larank.sequence.tagger",
    "SmoothedHinge": "larank.linear.primal",
    "StructuredModel": "larank.structured.model",
    "StructuredSVC": "larank.structured.svc",
    "TableEncoder": "larank.tables.encoder",
    "TrackingSVC": "larank.kernel.tracking",
    "TrainingWarning": "larank.training",
    "distance_label_kernel": "larank.linear.labelkernel",
    "load": "larank.data.models",
    "on_interrupt": "larank.training",
    "save": "larank.data.models",
    "tree_label_kernel": "larank.linear.labelkernel",
}

_ROOMS = ("active", "dask", "data")  # modules for users, beside the names


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that each part of the library can be used on its own."""
    if name in _ROOMS:
        return importlib.import_module(f"larank.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'larank' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
