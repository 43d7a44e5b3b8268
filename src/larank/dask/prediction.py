"""What fitted models say about Dask collections: the workers ask the model, partition by partition.

The model is an ordinary one of ours, or a pipeline with one. It travels once to every worker. Labels, scores and
features come back as lazy collections of the kind that X is; only `score` computes.
"""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.bag import Bag
from dask.delayed import delayed
from scipy.sparse import issparse

from larank.dask.collections import aligned_partitions, is_frame, partitions_of, with_whole_rows
from larank.sequence.tagger import SequenceTagger


def predict(model: Any, X: Any) -> Any:
    """The labels of a Dask collection.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : Dask array, data frame or bag, or list of delayed partitions
        The examples. A bag holds sentences for a tagger, and for other models what `model.predict` takes a list of.

    Returns
    -------
    Dask array, series or bag, or list of delayed
        As X is; nothing is computed.
    """
    return asked(model, "predict", X)


def decision_function(model: Any, X: Any) -> Any:
    """The scores of a Dask collection; the arguments are those of `predict`.

    Of three or more classes in a data frame they are a data frame with a column for each class.
    """
    return asked(model, "decision_function", X)


def predict_proba(model: Any, X: Any) -> Any:
    """The probabilities of the classes, of models that have them; the arguments are those of `predict`."""
    return asked(model, "predict_proba", X)


def transform(model: Any, X: Any) -> Any:
    """The features that a fitted map or encoder makes of a Dask collection; the arguments are those of `predict`."""
    return asked(model, "transform", X)


def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The share of labels that the model predicts, of tokens for a tagger; this computes.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : Dask array, data frame or bag, or list of delayed partitions
        The examples.
    y, sample_weight : collections with the partitions of X
        Their labels, and optionally their weights.
    """
    parts = aligned_partitions(X=X, y=y, sample_weight=sample_weight)
    shared, names = delayed(_sent(model)), list(parts)
    each = [
        delayed(_scored)(shared, **dict(zip(names, part, strict=True))) for part in zip(*parts.values(), strict=True)
    ]
    found = np.array(dask.compute(*each))
    right, total = found.sum(axis=0)
    if not total > 0:
        raise ValueError("X must hold at least one example with a weight above zero for a score, got none")
    return float(right / total)


def asked(model: Any, method: str, X: Any) -> Any:
    """What a method of the model says about each partition, as a collection like X."""
    ask = getattr(model, method, None)
    if ask is None:
        raise AttributeError(f"{type(model).__name__} has no {method}")
    model = _sent(model)
    if isinstance(X, da.Array):
        return _of_array(model, method, with_whole_rows(X))
    if is_frame(X):
        meta = _of_frame(X._meta_nonempty, model, method).iloc[:0]
        return X.map_partitions(_of_frame_or, delayed(model), method, empty=meta, meta=meta)
    if isinstance(X, Bag):
        return X.map_partitions(_of_list, model=delayed(model), method=method)
    shared = delayed(model)
    return [delayed(_of_part)(part, shared, method) for part in partitions_of("X", X)]


def _sent(model: Any) -> Any:
    """What travels to the workers: of a tagger, which keeps patterns to go on training, only what predicts."""
    return model._for_prediction() if isinstance(model, SequenceTagger) else model


# ---- Arrays ----


def _of_array(model: Any, method: str, X: da.Array) -> da.Array:
    """A row of zeros tells the type and the width of the answer."""
    width = model.n_features_in_ if np.isnan(X.shape[1]) else X.shape[1]
    like = np.asarray(getattr(model, method)(np.zeros((1, width), X.dtype)))[:0]
    shape: dict[str, Any] = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], (like.shape[1],))}
    return X.map_blocks(
        _of_rows, model=delayed(model), method=method, like=like, dtype=like.dtype, meta=like, name=None, **shape
    )


def _of_rows(X: Any, model: Any, method: str, like: Any) -> Any:
    return np.asarray(getattr(model, method)(X)).astype(like.dtype, copy=False) if X.shape[0] else like


# ---- Data frames ----


def _of_frame(X: Any, model: Any, method: str) -> Any:
    """The answer with the index of the rows; several columns are named by the classes, or as the model names them."""
    import pandas as pd  # a data frame is here, and so is this

    found = getattr(model, method)(X)
    found = found.toarray() if issparse(found) else np.asarray(found)
    if found.ndim == 1:
        return pd.Series(found, index=X.index)
    columns = model.get_feature_names_out() if method == "transform" else model.classes_
    return pd.DataFrame(found, index=X.index, columns=columns)


def _of_frame_or(X: Any, model: Any, method: str, empty: Any) -> Any:
    return _of_frame(X, model, method) if len(X) else empty


# ---- Bags and delayed partitions ----


def _of_list(part: Any, model: Any, method: str) -> list[Any]:
    examples = list(part)
    return list(getattr(model, method)(examples)) if examples else []


def _of_part(part: Any, model: Any, method: str) -> Any:
    if _length(part):
        return getattr(model, method)(part)
    return [] if isinstance(part, list) else _of_rows(part, model, method, np.zeros(0))


def _length(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def _scored(model: Any, X: Any, y: Any, sample_weight: Any = None) -> tuple[float, float]:
    """The weight of what is predicted in a partition, and of all."""
    X, y = (part if hasattr(part, "shape") else list(part) for part in (X, y))
    if _length(X) != _length(y):
        raise ValueError(f"X and y must be equally long in every partition, got {_length(X)} and {_length(y)}")
    if isinstance(model, SequenceTagger):
        total: float = sum(map(len, X))
        return (model.score(X, y) * total, total) if total else (0.0, 0.0)
    weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
    total = _length(X) if weights is None else float(weights.sum())
    if not total:
        return 0.0, 0.0
    return model.score(X, y, **({} if weights is None else {"sample_weight": weights})) * total, total
