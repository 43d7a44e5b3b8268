"""Large-margin learning at scale: online and exact solvers for multiclass and structured SVMs."""

from importlib.metadata import version

from larank.multiclass.sdm import LinearMulticlassSVC

__all__ = ["LinearMulticlassSVC", "__version__"]

__version__ = version("larank")
