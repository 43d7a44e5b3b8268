"""What the estimators of `larank.dask` share: answers about partitions, and the ordinary model that each one is."""

from __future__ import annotations

from typing import Any

from larank.dask.collections import is_collection
from larank.dask.prediction import asked, score
from larank.publishing import one_model


class OnPartitions:
    """A classifier that is fitted on a Dask collection, and asked about collections or about local data."""

    _ordinary: type[Any]

    def local(self) -> Any:
        """The same model as an ordinary estimator, which needs no Dask and can be saved."""
        model: Any = object.__new__(self._ordinary)
        model.__dict__ = one_model(self).__dict__.copy()
        return model

    def predict(self, X: Any) -> Any:
        """The labels; of a Dask collection as a lazy collection, see `larank.dask.predict`."""
        return self._answer("predict", X)

    def decision_function(self, X: Any) -> Any:
        """The scores of the classes; of a Dask collection as a lazy collection, see `larank.dask.predict`."""
        return self._answer("decision_function", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of examples whose label is predicted, of local data or of a Dask collection."""
        if is_collection(X):
            return score(self.local(), X, y, sample_weight)
        return float(self.local().score(X, y, sample_weight))

    def _answer(self, method: str, X: Any) -> Any:
        model = self.local()
        return asked(model, method, X) if is_collection(X) else getattr(model, method)(X)
