"""`TableEncoder`: the columns of a table as features, matched by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack, issparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_n_features, check_is_fitted

from larank import declare
from larank.base import FEATURES, Estimator, absent
from larank.data.models import persistable
from larank.data.schema import SchemaError, Scope, instance, several
from larank.data.tables import ColumnError
from larank.declare import ParameterError, fitted, parameter
from larank.publishing import next_model, of_one_model
from larank.tables.columns import COLUMNS, KINDS, Column, DroppedColumn, Features
from larank.tables.frames import Table, table_of
from larank.tables.recognition import Wishes, recognised
from larank.tables.values import has_leading_zeros, plain_numbers_in

if TYPE_CHECKING:
    import polars

_DENSE = 0.25  # the share of features that are not zero, below which they come as a CSR matrix
_SMALL = 64  # features that are never


def _check_columns(name: str, value: Any, scope: Scope) -> None:
    several(instance(*(kind.__name__ for kind in COLUMNS)), "n_features_in_")(name, value, scope)
    names = [column.name for column in value]
    if len(set(names)) < len(names):
        raise SchemaError(f"{name} must have a name of its own for each column, got some twice")
    known = scope.known.get("feature_names_in_")
    if known is not None and known.tolist() != names:
        raise SchemaError(f"{name} must have the names of feature_names_in_, got others")
    if not any(column.width for column in value):
        raise SchemaError(f"{name} must have a column with features, got none")


@persistable(**FEATURES, columns_=_check_columns)
class TableEncoder(TransformerMixin, Estimator):  # type: ignore[misc]
    """Features from the columns of a table: numbers, categories, dates, text and what is missing.

    Numbers are standardised, categories become a feature each, and a value that is missing is filled in and marked by
    a feature of its own. What a column is, its cells tell: text that is written as numbers or dates is taken as these.
    Columns that are the same in all rows, or that number the rows, are left out. `summary` tells it column by column.

    Columns are matched by name: their order does not matter, those that training has not seen are left out with a
    warning, and those that are missing are an error. Arrays have columns by position.

    Attributes
    ----------
    columns_ : list
        What each column was found to be, with what was learned of it.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if they have any.

    Examples
    --------
    >>> import polars
    >>> from larank import LinearMulticlassSVC, TableEncoder
    >>> from sklearn.pipeline import make_pipeline
    >>> people = polars.DataFrame({"age": [31, None, 8, 55], "town": ["Ulm", "Rom", "Rom", "Ulm"]})
    >>> encoder = TableEncoder().fit(people)
    >>> print(encoder.summary())
    age   number, standardised (mean 31.33, deviation 19.19); 1 missing, given the mean and an indicator
    town  category: Rom, Ulm
    >>> model = make_pipeline(TableEncoder(), LinearMulticlassSVC()).fit(people, ["yes", "no", "no", "yes"])
    >>> model.predict(people.select("town", "age")).tolist()
    ['yes', 'no', 'no', 'yes']
    """

    label: str | None = parameter(
        "The column of the labels in the table that `fit` takes, which is not a feature. Later tables may lack it.",
        default=None,
        form="str",
    )
    kinds: Mapping[str, str] | None = parameter(
        "The kinds of columns that are not what they look like, by name.",
        default=None,
        form='mapping of str to {"number", "boolean", "date", "category", "text", "drop"}',
    )
    scale: Literal["standard", "robust", "none"] = parameter(
        "What numbers are divided by: their standard deviation, the distance of their quartiles, which outliers do "
        "not change, or nothing. Before, their mean or median is taken away.",
        default="standard",
    )
    min_frequency: int = parameter(
        "The rows that a category must be in for a feature of its own; rarer ones share one, also with those that "
        "come after training.",
        default=2,
        least=1,
    )
    max_categories: int = parameter(
        "The most categories of a column that have a feature of their own.",
        default=100,
        least=1,
    )
    text: Literal["tfidf", "hash"] = parameter(
        "What becomes of the words in text: a weighed feature for each that is in two rows at least, or one of "
        "`text_features` by a hash of the word.",
        default="tfidf",
    )
    text_features: int = parameter(
        "The most words of a column that have a feature, or the number of hashes.",
        default=10000,
        least=1,
        most=16777216,
    )

    columns_: list[Column] = fitted()
    n_features_in_: int = fitted()
    feature_names_in_: NDArray[Any] = fitted()
    partial_fit: ClassVar[Any] = absent(
        "because it recognises columns by all their values. Fit it on a sample of the rows; transform takes any number "
        "of them, also in parts"
    )

    def __sklearn_tags__(self) -> Any:
        """Missing values and words are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find out what the columns are.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_columns)
            The table: a frame of polars, pandas, pyarrow or any other library that narwhals knows, or an array.
        y : None
            Not used; pipelines pass it.

        Returns
        -------
        object
            Itself, fitted. An exception leaves it as it was.
        """
        with next_model(self) as model:
            model._learn(table_of(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Features:
        """Find out what the columns are, and return the features of the rows, as ``fit(X).transform(X)`` does.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_columns)
            The table, as for `fit`.
        y : None
            Not used; pipelines pass it.

        Returns
        -------
        ndarray or csr_matrix of shape (n_samples, n_features_out)
            As `transform` returns them.
        """
        with next_model(self) as model:
            frame = model._learn(table_of(X))
            return model._features(frame)

    @of_one_model
    def transform(self, X: Any) -> Features:
        """The features of the rows of a table.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_columns)
            A table with the columns of training, in any order.

        Returns
        -------
        ndarray or csr_matrix of shape (n_samples, n_features_out)
            A CSR matrix where there are many features and most of them are zero.
        """
        check_is_fitted(self)
        return self._features(self._matched(table_of(X)))

    @of_one_model
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features: those of columns, "town=Ulm" of categories, "age is missing" of indicators.

        Parameters
        ----------
        input_features : array of str, optional
            Names for the columns of an array; those of a table are known.

        Returns
        -------
        ndarray of str
            A name for each feature.
        """
        check_is_fitted(self)
        if input_features is not None:
            given = list(map(str, input_features))
            if len(given) != self.n_features_in_:
                raise ValueError(f"input_features should have length equal to number of features, got {len(given)}")
            if hasattr(self, "feature_names_in_") and given != self.feature_names_in_.tolist():
                raise ValueError(f"input_features is not equal to feature_names_in_, got {given}")
        return np.array([name for column in self.columns_ for name in column.feature_names], dtype=object)

    @of_one_model
    def summary(self) -> str:
        """A line for each column, which says what was made of it."""
        check_is_fitted(self)
        told = [(" ".join(column.name.split()), " ".join(column.told().split())) for column in self.columns_]
        width = max(len(name) for name, _ in told)
        return "\n".join(f"{name:{width}}  {words}" for name, words in told)

    @property
    def plain_numbers(self) -> list[str]:
        """The columns whose text is numbers with a point, which readers may make at once."""
        return [column.name for column in self.columns_ if getattr(column, "style", "") == "point"]

    @property
    def _used(self) -> list[Column]:
        return [column for column in self.columns_ if not isinstance(column, DroppedColumn)]

    @property
    def _is_sparse(self) -> bool:
        width = sum(column.width for column in self._used)
        return width > _SMALL and sum(column.stored for column in self._used) < _DENSE * width

    def _features(self, frame: polars.DataFrame) -> Features:
        parts = [column.features(frame[column.name]) for column in self._used]
        return _joined(parts, len(frame), self._is_sparse)

    def _learn(self, table: Table) -> polars.DataFrame:
        """Set the fitted attributes; the table, with numbers where text is plain ones, so that they are read once."""
        declare.check(self)
        if self.label is not None and self.label not in table.frame.columns:
            raise ColumnError(
                f"label must name a column of X, {_listed(table.frame.columns)}; got {self.label!r}. Leave it away "
                "if X has no labels"
            )
        frame = self._without_label(table)
        if not len(frame) or not frame.columns:
            raise ValueError(
                f"X must have rows and columns, got {len(frame)} and {len(frame.columns)}: 0 feature(s) "
                f"(shape={frame.shape}) while a minimum of 1 is required."
            )
        kinds = dict(self.kinds or {})
        unknown = kinds.keys() - set(frame.columns)
        if unknown:
            raise ValueError(f"kinds must name columns of X, {_listed(frame.columns)}; got {_listed(sorted(unknown))}")
        wishes = Wishes(self.scale, self.min_frequency, self.max_categories, self.text, self.text_features)
        frame = frame.with_columns(
            numbers for name in frame.columns if (numbers := _plain_numbers(frame[name], kinds.get(name))) is not None
        )
        columns = [recognised(frame[name], kinds.get(name), wishes) for name in frame.columns]
        if not any(column.width for column in columns):
            reasons = "; ".join(f"{column.name}: {column.told()}" for column in columns[:5])
            raise ColumnError(
                f"there must be a column that tells rows apart, but there is none (n_samples={len(frame)}): {reasons}; "
                "kinds={'NAME': KIND} (--column NAME=KIND) keeps one"
            )
        self.columns_ = columns
        self.n_features_in_ = len(columns)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if table.has_names:
            self.feature_names_in_ = np.array(frame.columns, dtype=object)
        return frame

    def _check_together(self) -> None:
        super()._check_together()
        if self.label is not None and not isinstance(self.label, str):
            raise ParameterError("label", f"must be the name of a column or None; got {self.label!r}")
        if self.kinds is not None and not isinstance(self.kinds, Mapping):
            raise ParameterError("kinds", f"must be a mapping from names of columns to kinds; got {self.kinds!r}")
        for name, kind in (self.kinds or {}).items():
            if not isinstance(name, str) or kind not in KINDS:
                raise ParameterError(
                    "kinds", f"must map names of columns to {_listed(KINDS)}; got {{{name!r}: {kind!r}}}"
                )

    def _without_label(self, table: Table) -> polars.DataFrame:
        frame = table.frame
        return frame.drop(self.label) if self.label in frame.columns else frame

    def _matched(self, table: Table) -> polars.DataFrame:
        """The columns of training; those of an array by position."""
        frame, names = self._without_label(table), [column.name for column in self.columns_]
        if not table.has_names:
            _check_n_features(self, np.empty((1, frame.width)), reset=False)
            if hasattr(self, "feature_names_in_"):
                warnings.warn(
                    "X does not have valid feature names, but TableEncoder was fitted with feature names: columns are "
                    "taken by their position",
                    stacklevel=4,
                )
            return frame.rename(dict(zip(frame.columns, names, strict=True)))
        if not hasattr(self, "feature_names_in_") and frame.width == len(names):
            return frame.rename(dict(zip(frame.columns, names, strict=True)))
        self._check_names(frame.columns, names)
        return frame

    def _check_names(self, found: list[str], names: list[str]) -> None:
        """Columns that are not used need not be there."""
        missing = [column.name for column in self._used if column.name not in found]
        extra = [name for name in found if name not in names]
        if missing:
            also = f"; it has {_listed(extra)} instead" if extra else ""
            raise ColumnError(f"the columns of training must be there, but there is no {_listed(missing)}{also}")
        if extra:
            warnings.warn(f"columns that training has not seen are left out: {_listed(extra)}", stacklevel=5)


def _plain_numbers(series: polars.Series, kind: str | None) -> polars.Series | None:
    """The numbers of a column whose text is nothing else, if it is not to be anything else."""
    if kind not in (None, "number"):
        return None
    numbers = plain_numbers_in(series)
    if numbers is None or kind == "number" or not (numbers == numbers.floor()).all():
        return numbers
    return None if has_leading_zeros(series) else numbers


def _listed(names: Iterable[str], most: int = 10) -> str:
    names = list(names)
    text = ", ".join(map(repr, names[:most]))
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def _joined(parts: list[Features], n_rows: int, is_sparse: bool) -> Features:
    if is_sparse:
        return csr_matrix(hstack([part if issparse(part) else csr_matrix(part) for part in parts]))
    # Feature by feature is how columns come, and row by row how estimators want them.
    made = np.zeros((sum(part.shape[1] for part in parts), n_rows))
    first = 0
    for part in parts:
        last = first + part.shape[1]
        made[first:last] = part.toarray().T if issparse(part) else part.T
        first = last
    return np.ascontiguousarray(made.T)
