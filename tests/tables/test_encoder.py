"""Columns of any kind become features; what a column is, its cells tell."""

import datetime as dt
import pickle
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler

import larank
from larank import LinearMulticlassSVC, TableEncoder
from larank.data.tables import CellError, ColumnError

N = 60


@pytest.fixture
def random():
    return np.random.default_rng(0)


def one(column):
    return polars.DataFrame({"c": column})


def encoded(column, **parameters):
    """The features of a table of one column, and the line that tells of it."""
    encoder = TableEncoder(**parameters)
    found = encoder.fit_transform(one(column))
    return (found.toarray() if sparse.issparse(found) else found), encoder


def kind(column, name="c"):
    other = polars.Series("other", range(len(column))) % 7 / 3
    return TableEncoder().fit(polars.DataFrame({name: column, "other": other})).columns_[0]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 2, 2, 5], "number"),
        (["1", "2.5", "-3e2", "4"], "number"),
        (["1,5", "2,25", "3", "1.000,5"], "number"),
        (["1,500", "2,250.5", "3", "12"], "number"),
        ([" 1 ", "2", "NA", ""], "number"),
        (["45%", "7.5 %", "100%"], "number"),
        (["$1,200", "$80", "$1,000,000"], "number"),
        (["00501", "10001", "94016"] * 4, "category"),
        (["0", "1.50", "0.5"], "number"),
        ([True, False, None, True], "boolean"),
        (["True", "False", "true", ""], "boolean"),
        (["yes", "no", "no", "yes"], "category"),
        (["S", "M", "40", "42"] * 5, "category"),
        ([dt.date(2020, 1, 1), dt.date(2020, 5, 1), None], "date"),
        (["2020-01-01", "2021-12-31", "?"], "date"),
        (["2020-01-01 10:00:00", "2021-12-31 23:59:59"], "date"),
        (["2020-01-01T10:00:00Z", "2021-12-31T23:59:59Z"], "date"),
        (["31.12.2020", "01.02.2021"], "date"),
        (["12/31/2020", "01/02/2021"], "date"),
        (["31/12/2020", "01/02/2021"], "date"),
        ([f"the cat number {i}" for i in range(N)], "text"),
        ([f"u{i}" for i in range(N)], "drop"),
        (list(range(N)), "drop"),
        ([*range(1, N, 2), *range(0, N, 2)], "drop"),
        ([7 * i % (10 * N) for i in range(N)], "number"),
        (["x"] * 5, "drop"),
        ([3.0] * 5, "drop"),
        ([None] * 5, "drop"),
        (["NA"] * 5, "drop"),
        (["x", None, "x", None], "category"),
        ([[1], [2], [3]], "drop"),
        ([True] * 5, "drop"),
        ([dt.date(2020, 1, 1)] * 5, "drop"),
        ([dt.timedelta(1), dt.timedelta(2)], "number"),
        ([dt.time(1), dt.time(2)], "number"),
        ([dt.datetime(2020, 1, day, tzinfo=dt.UTC) for day in (1, 2)], "date"),
    ],
)
def test_a_column_is_recognised(column, expected):
    assert kind(polars.Series(column)).kind == expected


NOTHING_TOLD = [(list("abcd"), "category"), (["a b", "c d"], "text")]
NOTHING_TOLD += [(["NA", "?"], wanted) for wanted in ("number", "boolean", "date")]


@pytest.mark.parametrize(("column", "wanted"), NOTHING_TOLD)
def test_a_column_that_tells_nothing_is_left_out_whatever_was_asked_for(column, wanted):
    frame = polars.DataFrame({"c": column, "other": range(len(column))})
    assert TableEncoder(kinds={"c": wanted}).fit(frame).columns_[0].kind == "drop"


@pytest.mark.parametrize(("name", "expected"), [("customer_id", "drop"), ("PassengerId", "drop"), ("paid", "number")])
def test_a_number_that_is_called_an_identifier_is_one(name, expected, random):
    assert kind(random.permutation(10 * N)[:N], name).kind == expected


def test_kinds_that_are_asked_for_are_taken():
    frame = polars.DataFrame({"zip": ["00501", "10001", "00501", "94016"] * 9, "n": range(36), "s": list("abcd") * 9})
    encoder = TableEncoder(kinds={"zip": "category", "n": "number", "s": "drop"}).fit(frame)
    assert [column.kind for column in encoder.columns_] == ["category", "number", "drop"]
    assert encoder.columns_[0].categories == ("00501", "10001", "94016")
    assert encoder.transform(frame).shape == (36, 4)


def test_numbers_are_standardised_as_scikit_learn_does(random):
    column = random.normal(5, 3, N)
    for scale, reference in (("standard", StandardScaler()), ("robust", RobustScaler())):
        np.testing.assert_allclose(encoded(column, scale=scale)[0], reference.fit_transform(column[:, None]))
    np.testing.assert_array_equal(encoded(column, scale="none")[0][:, 0], column)
    found, encoder = encoded([1e308, -1e308, 5e-324, 1e200])  # beyond all measure
    assert np.isfinite(found).all()
    for some in (encoder, encoded([1.0, 1.0 + 1e-9])[1]):
        assert np.isfinite(some.transform(one([1.7e308, -1.7e308]))).all()


@pytest.mark.parametrize(("scale", "fill"), [("standard", np.mean), ("robust", np.median), ("none", np.median)])
def test_missing_numbers_are_filled_in_and_marked(scale, fill):
    found, encoder = encoded([1.0, None, 2.0, 9.0, None], scale=scale)
    present = np.array([1.0, 2.0, 9.0])
    back = found[:, 0] * encoder.columns_[0].scale + encoder.columns_[0].center
    np.testing.assert_allclose(back, [1, fill(present), 2, 9, fill(present)])
    np.testing.assert_array_equal(found[:, 1], [0, 1, 0, 0, 1])
    assert encoder.get_feature_names_out().tolist() == ["c", "c is missing"]


def test_what_was_never_missing_in_training_is_filled_in_later():
    frame = polars.DataFrame({"a": [1.0, 3.0] * 2, "b": ["x", "y"] * 2, "d": [True, False] * 2})
    encoder = TableEncoder().fit(frame)
    later = polars.DataFrame({"a": [None, 3.0], "b": [None, "z"], "d": [None, True]})
    np.testing.assert_array_equal(encoder.transform(later), [[0, 0, 0, 1], [1, 0, 0, 1]])


def test_categories_are_one_hot_with_a_bucket_for_rare_ones_as_in_scikit_learn():
    column = np.array(["a"] * 9 + ["b"] * 5 + ["c", "d"])
    found, encoder = encoded(column, min_frequency=2)
    reference = OneHotEncoder(min_frequency=2, sparse_output=False, handle_unknown="infrequent_if_exist")
    np.testing.assert_array_equal(found, reference.fit_transform(column[:, None]))
    new = np.array(["b", "e", "c"])
    np.testing.assert_array_equal(encoder.transform(one(new)), reference.transform(new[:, None]))
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=b", "c is rare"]
    assert encoded(column, max_categories=1)[1].get_feature_names_out().tolist() == ["c=a", "c is rare"]
    found, encoder = encoded(["a", None, "b", "a", "b", " NA "])  # missing is a category, and there are words for it
    np.testing.assert_array_equal(found, np.eye(3)[[0, 2, 1, 0, 1, 2]])
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=b", "c is missing"]


TEXT = [f"{['good', 'bad'][i % 2]} and {['cheap', 'dear', 'fair'][i % 3]} number {i}" for i in range(N)]


def test_text_is_tf_idf_or_hashed_as_in_scikit_learn():
    found, encoder = encoded(TEXT)
    reference = TfidfVectorizer(min_df=2)
    np.testing.assert_allclose(found, reference.fit_transform(TEXT).toarray())
    assert encoder.get_feature_names_out()[0] == f"c: {reference.get_feature_names_out()[0]}"
    hashed = HashingVectorizer(n_features=32).transform(TEXT).toarray()
    np.testing.assert_allclose(encoded(TEXT, text="hash", text_features=32)[0], hashed)
    assert encoded([*TEXT, None])[0][:, -1].tolist() == [0] * N + [1]


def test_dates_are_a_time_and_places_in_cycles():
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(hours=7 * i) for i in range(2 * 365)]
    found, encoder = encoded(days)
    names = encoder.get_feature_names_out().tolist()
    assert names == ["c", *(f"c, {part} of the {of}" for of in ("year", "week", "day") for part in ("sine", "cosine"))]
    np.testing.assert_allclose(found[:, 0], StandardScaler().fit_transform(np.arange(2 * 365.0)[:, None])[:, 0])
    np.testing.assert_allclose(found[:, 5] ** 2 + found[:, 6] ** 2, 1)
    np.testing.assert_allclose(encoder.transform(one([dt.datetime(2020, 3, 3, 6)]))[0, 5:], [1, 0], atol=1e-9)


def test_wide_features_are_sparse_and_few_are_not(random):
    assert isinstance(encoded(random.normal(size=(N)))[1].transform(one([1.0])), np.ndarray)
    words = [f"w{i % 100}" for i in range(400)]
    found = TableEncoder().fit_transform(polars.DataFrame({"a": words, "b": words}))
    assert sparse.issparse(found)
    assert found.shape == (400, 200)


FRAME = polars.DataFrame(
    {
        "size": [1.5, None, 3.0, 4.5, 2.0, 1.0] * 5,
        "town": ["Ulm", "Rome", None, "Ulm", "Bath", "Rome"] * 5,
        "new": [True, False, None, True, True, False] * 5,
        "made": [dt.date(2020, 1 + i % 12, 3) for i in range(30)],
        "label": [0, 1, 0, 1, 1, 0] * 5,
    }
)


def test_the_order_of_columns_does_not_matter_and_labels_are_no_features():
    encoder = fitted()
    expected = encoder.transform(FRAME)
    np.testing.assert_array_equal(encoder.transform(FRAME.select(FRAME.columns[::-1])), expected)
    np.testing.assert_array_equal(encoder.transform(FRAME.drop("label")), expected)
    assert encoder.n_features_in_ == 4
    lines = encoder.summary().splitlines()
    assert [line.split()[0] for line in lines] == ["size", "town", "new", "made"]
    assert lines[0].endswith("5 missing, given the mean and an indicator")


MANY = [str(i / 4) for i in range(N)]
DAYS = [f"2020-01-{1 + i % 28:02d}" for i in range(N)]


def fitted():
    return TableEncoder(label="label").fit(FRAME)


def with_cell(cells, place, cell):
    return one([*cells[:place], cell, *cells[place + 1 :]])


TWICE, NOT_NUMBERS = pd.DataFrame([[1, 2]], columns=["a", "a"]), FRAME.with_columns(size=polars.col("made"))
COLUMN_C = "row 1, column 'c': -?inf is not finite"
NUMBER_12O = "row 41, column 'c': '12O' is not a number, but 59 of 60 values are; mend it"
# Parameters, the table, the error and its words.
NOT_FITTED = [
    ({"kinds": {"c": "float"}}, one([1, 2]), ValueError, "kinds must map names of .* 'number', .*; got {'c': 'float'}"),
    ({"kinds": ["c"]}, one([1, 2]), ValueError, "kinds must be a mapping"),
    ({"kinds": {"d": "text"}}, one([1, 2]), ValueError, "kinds must name columns of X, 'c'; got 'd'"),
    ({"label": 3}, one([1, 2]), ValueError, "label must be the name of a column or None; got 3"),
    ({"label": "Label"}, FRAME, ColumnError, r"label must name a column of X, 'size', 'town', .*; got 'Label'"),
    ({"label": "label"}, FRAME.drop("label"), ColumnError, "got 'label'"),
    ({"label": "label"}, FRAME.rows(), ColumnError, "got 'label'"),
    *(({}, one(cells), CellError, COLUMN_C) for cells in ([1.0, np.inf], [1.0, -np.inf], ["1.0", "inf"])),
    ({}, with_cell(MANY, 41, "12O"), CellError, NUMBER_12O),
    (
        {},
        with_cell(DAYS, 7, "yesterday"),
        CellError,
        "row 7, column 'c': 'yesterday' is not a date written as %Y-%m-%d",
    ),
    ({}, sparse.eye(3), TypeError, "X must be a table"),
    ({}, np.arange(3.0), ValueError, "Expected 2D array"),
    ({}, {"a": [1, 2]}, ValueError, "X must be a data frame or an array of rows, got a dict; pandas.DataFrame makes"),
    ({}, "people.csv", ValueError, "got a str.*TableFile"),
    ({}, None, ValueError, "got a NoneType"),
    ({}, np.ones((0, 2)), ValueError, "must have rows and columns"),
    ({}, [[1j, 2]], ValueError, "Complex data not supported"),
    ({}, TWICE, ValueError, "unique column names"),
    ({}, pd.DataFrame([[1, 2]], columns=["1", 1]), ValueError, "columns of different names, got '1' twice"),
    ({}, [[[1], 2], [[3], 4]], TypeError, "must hold single values"),
    ({}, np.ones((5, 2)), ValueError, "there must be a column that tells rows apart"),
]
RENAMED, BIG = FRAME.drop("new").rename({"size": "Size"}), polars.Series(["1", "2", "big", *"0" * 27])
NOT_TRANSFORMED = [
    (RENAMED, ValueError, "there is no 'size', 'new'; it has 'Size' instead"),
    (FRAME.with_columns(size=BIG), CellError, "row 2, column 'size': 'big' is not a number"),
    (NOT_NUMBERS, ValueError, "column 'size' must hold numbers; got values of type Date"),
    (FRAME.with_columns(new="made"), ValueError, "column 'new' must hold true and false; got values of type Date"),
    (FRAME.with_columns(made="new"), ValueError, "column 'made' must hold dates; got values of type Boolean"),
    (FRAME.with_columns(new=polars.lit("maybe")), CellError, "column 'new': 'maybe' is neither true nor false"),
    (FRAME.with_columns(made=polars.lit("soon")), CellError, "column 'made': 'soon' is not a date"),
]
REFUSED = [("fit", {"label": None} | parameters, *row) for parameters, *row in NOT_FITTED]
REFUSED += [("transform", {}, *row) for row in NOT_TRANSFORMED]


@pytest.mark.parametrize(("method", "parameters", "table", "error", "said"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_encoded_is_refused_and_leaves_the_encoder_as_it_was(method, parameters, table, error, said):
    encoder = fitted()
    before = encoder.summary()
    encoder.set_params(**parameters)
    with pytest.raises(error, match=said):
        getattr(encoder, method)(table)
    assert encoder.summary() == before


def test_a_column_that_training_has_not_seen_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="columns that training has not seen are left out: 'more'"):
        fitted().transform(FRAME.with_columns(more=1))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_tables_of_any_library_are_the_same_table():
    encoder = fitted()
    expected = encoder.transform(FRAME)
    columns = FRAME.to_dict(as_series=False)
    objects = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    for table in (FRAME.lazy(), pd.DataFrame(columns), objects, pd.DataFrame(columns).convert_dtypes()):
        np.testing.assert_array_equal(encoder.transform(table), expected)
        np.testing.assert_array_equal(TableEncoder(label="label").fit_transform(table), expected)
    rows = FRAME.drop("label").rows()
    np.testing.assert_array_equal(encoder.transform(rows), expected)
    np.testing.assert_array_equal(encoder.transform(np.array(rows, dtype=object)), expected)
    text = polars.DataFrame({name: FRAME[name].cast(polars.String) for name in FRAME.columns})
    np.testing.assert_array_equal(encoder.transform(text), expected)


def test_numbers_may_be_names_of_columns_and_names_are_those_of_the_last_fit():
    encoder, rows = TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0]})), np.array([[1.0, 4.0], [2.0, 3.0]])
    assert encoder.get_feature_names_out(["a"]).tolist() == ["a"]
    for names, said in ((["b"], "not equal to feature_names_in_"), (["a", "b"], "length equal to number of features")):
        with pytest.raises(ValueError, match=said):
            encoder.get_feature_names_out(names)
    expected = encoder.fit(rows).transform(rows)
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame(rows)), expected)
    np.testing.assert_array_equal(TableEncoder().fit_transform(pd.DataFrame(rows)), expected)


def test_objects_are_numbers_or_words():
    cells = [[Decimal("1e80"), np.datetime64("2020-01")], [Decimal("0.5"), np.datetime64("2021-02")]] * 2
    encoder = TableEncoder().fit(pd.DataFrame(cells, columns=["price", "month"], dtype=object))
    assert [column.kind for column in encoder.columns_] == ["number", "category"]


def test_categories_of_pandas_and_polars_and_whole_numbers_are_words():
    words = ["b", "a", None, "a", "b"]
    in_pandas = pd.DataFrame({"c": pd.Series(words, dtype="category")})
    for frame in (in_pandas, polars.DataFrame({"c": words}, schema={"c": polars.Categorical})):
        assert TableEncoder().fit(frame).columns_[0].categories == ("a", "b")
    encoder = TableEncoder(kinds={"c": "category"}).fit(pd.DataFrame({"c": [1, 2, 1, 2]}))
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"c": [2.0, np.nan]})), [[0, 1], [0, 0]])


def test_it_goes_into_pipelines_searches_copies_and_files(tmp_path):
    model = make_pipeline(TableEncoder(label="label"), LinearMulticlassSVC(random_state=0))
    search = GridSearchCV(model, {"tableencoder__scale": ["standard", "robust"]}, cv=3)
    best = search.fit(pd.DataFrame(FRAME.to_dict(as_series=False)), FRAME["label"].to_numpy()).best_estimator_
    expected = best.predict(FRAME)
    larank.save(best, tmp_path / "m.larank")
    for copy in (pickle.loads(pickle.dumps(best)), larank.load(tmp_path / "m.larank")):
        np.testing.assert_array_equal(copy.predict(FRAME), expected)
        assert copy[0].summary() == best[0].summary()
    assert not hasattr(clone(best)[0], "columns_")


def test_pipelines_of_other_maps_are_saved_too_and_others_are_refused(tmp_path, random):
    (X, y), path = (random.normal(size=(40, 3)), np.arange(40) % 2), tmp_path / "m.larank"
    kernel_map = larank.PivotedCholeskyMap(n_components=9, random_state=0)
    model = make_pipeline(kernel_map, larank.LinearSGDClassifier(random_state=0)).fit(X, y)
    larank.save(model, path)
    np.testing.assert_array_equal(larank.load(path).predict(X), model.predict(X))
    with pytest.raises(TypeError, match="StandardScaler, which cannot be saved"):
        larank.save(make_pipeline(StandardScaler(), LinearMulticlassSVC()).fit(X, y), path)
    with pytest.raises(ValueError, match="not fitted"):
        larank.save(make_pipeline(TableEncoder(), LinearMulticlassSVC()), path)


def test_without_its_libraries_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ValueError, match=r"tables need the package polars; pip install 'larank\[tables\]' brings it"):
        TableEncoder().fit(np.ones((2, 2)))
