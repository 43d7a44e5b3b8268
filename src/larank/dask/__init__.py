"""`larank.dask`: our estimators on the partitions of Dask collections; it needs the extra `dask`."""

try:
    from larank.dask.linear import LinearMulticlassSVC
    from larank.dask.maps import fit_on_sample
    from larank.dask.prediction import decision_function, predict, predict_proba, score, transform
    from larank.dask.sgd import LinearSGDClassifier
    from larank.dask.shares import ClusterError
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("dask", "distributed"):
        raise
    raise ImportError(f"larank.dask needs {missing.name}: pip install 'larank[dask]'") from missing

__all__ = [
    "ClusterError",
    "LinearMulticlassSVC",
    "LinearSGDClassifier",
    "decision_function",
    "fit_on_sample",
    "predict",
    "predict_proba",
    "score",
    "transform",
]
