"""What models say about Dask collections is what they say about the same data in memory."""

import subprocess
import sys

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.pipeline import make_pipeline

import larank
import larank.dask

SENTENCES = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks", "loudly"]] * 5
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V", "A"]] * 5


@pytest.fixture(autouse=True)
def sync():
    with dask.config.set(scheduler="sync"):
        yield


def examples(classes=("low", "mid", "high"), n=120):
    random = np.random.default_rng(0)
    y = np.array(classes)[random.integers(0, len(classes), n)]
    X = random.normal(size=(n, 4)) + 2 * np.searchsorted(np.sort(classes), y)[:, None] * [1, 0, 1, 0]
    return X, y


def fitted(X, y, **options):
    return larank.LinearMulticlassSVC(tol=0.1, random_state=0, **options).fit(X, y)


@pytest.mark.parametrize("classes", [("low", "mid", "high"), (3, 7), (True, False)])
def test_arrays_in_any_chunks_get_the_answers_of_the_model(classes):
    X, y = examples(classes)
    model, weights = fitted(X, y), np.linspace(0, 1, len(y))
    for chunks in [(50, 4), ((0, 100, 20), (1, 3))]:
        parts = da.from_array(X, chunks=chunks)
        labels, scores = larank.dask.predict(model, parts), larank.dask.decision_function(model, parts)
        assert (labels.dtype, scores.dtype) == (y.dtype, X.dtype)
        assert labels.shape == model.predict(X).shape
        assert scores.shape == model.decision_function(X).shape
        np.testing.assert_array_equal(labels.compute(), model.predict(X))
        np.testing.assert_allclose(scores.compute(), model.decision_function(X))
        given = [da.from_array(each, chunks=70) for each in (y, weights)]
        assert larank.dask.score(model, parts, given[0]) == model.score(X, y)
        assert larank.dask.score(model, parts, *given) == pytest.approx(model.score(X, y, weights))


def test_chunks_may_be_sparse_or_of_unknown_sizes():
    X, y = examples()
    model, parts = fitted(X, y), da.from_array(X, chunks=(50, 4))
    for chunks, rows in ((parts.map_blocks(csr_matrix), X), (parts[parts[:, 0] > 1], X[X[:, 0] > 1])):
        np.testing.assert_array_equal(larank.dask.predict(model, chunks).compute(), model.predict(rows))


def test_probabilities_have_a_column_per_class_and_a_pipeline_of_ours_is_a_model_too():
    X, y = examples()
    parts = da.from_array(X, chunks=(50, 4))
    model = larank.LinearSGDClassifier("log_loss", max_iter=2, random_state=0).fit(X, y)
    np.testing.assert_allclose(larank.dask.predict_proba(model, parts).compute(), model.predict_proba(X))
    model = make_pipeline(larank.KernelPCAMap(n_components=10), larank.LinearMulticlassSVC(random_state=0)).fit(X, y)
    np.testing.assert_array_equal(larank.dask.predict(model, parts).compute(), model.predict(X))


def test_data_frames_get_series_and_frames_with_their_index():
    X, y = examples()
    columns = list("abcd")
    frame = pd.DataFrame(X, columns=columns, index=np.arange(100, 220)).assign(y=y)
    model, parts = fitted(frame[columns], frame.y), dd.from_pandas(frame, npartitions=3)
    parts, expected = parts[parts.a > 1], frame[frame.a > 1]  # of unknown sizes
    labels = larank.dask.predict(model, parts[columns])
    scores = larank.dask.decision_function(model, parts[columns])
    assert labels.dtype == labels.compute().dtype
    pd.testing.assert_index_equal(labels.compute().index, expected.index)
    assert (labels.compute() == model.predict(expected[columns])).all()
    assert list(scores.columns) == list(scores.compute().columns) == ["high", "low", "mid"]
    score = larank.dask.score(model, parts[columns], parts.y)
    assert score == pytest.approx(model.score(expected[columns], expected.y))


def test_a_tagger_tags_bags_of_sentences():
    tagger = larank.SequenceTagger(random_state=0).fit(SENTENCES, TAGS)
    sentences, tags = (db.from_sequence(each, npartitions=4) for each in (SENTENCES, TAGS))
    assert larank.dask.predict(tagger, sentences).compute() == tagger.predict(SENTENCES).tolist()
    assert larank.dask.score(tagger, sentences, tags) == tagger.score(SENTENCES, TAGS)
    assert larank.dask.predict(tagger, sentences.filter(lambda s: False)).compute() == []


def test_delayed_partitions_get_delayed_answers():
    X, y = examples()
    model = fitted(X, y)
    parts = [dask.delayed(X[:70]), dask.delayed(X[:0]), dask.delayed(X[70:])]
    found = dask.compute(*larank.dask.predict(model, parts))
    np.testing.assert_array_equal(np.concatenate(found), model.predict(X))


@pytest.mark.parametrize(
    "kernel_map", [larank.KernelPCAMap(n_components=10), larank.PivotedCholeskyMap(n_components=10, random_state=0)]
)
def test_a_map_is_fitted_on_a_sample_and_applied_to_all(kernel_map):
    X, _ = examples()
    parts = da.from_array(X, chunks=((0, 70, 50), 4))
    larank.dask.fit_on_sample(kernel_map, parts, sample_size=40, random_state=0)
    assert kernel_map.n_components_ == 10
    np.testing.assert_allclose(larank.dask.transform(kernel_map, parts).compute(), kernel_map.transform(X), atol=1e-9)
    everything = larank.dask.fit_on_sample(larank.KernelPCAMap(), parts)
    np.testing.assert_allclose(everything.eigenvalues_, larank.KernelPCAMap().fit(X).eigenvalues_, atol=1e-9)
    for kind in (csr_matrix, pd.DataFrame):
        other = larank.dask.fit_on_sample(
            larank.KernelPCAMap(), [dask.delayed(kind(X[:70])), dask.delayed(kind(X[70:]))]
        )
        np.testing.assert_allclose(other.eigenvalues_, everything.eigenvalues_, atol=1e-9)
    with pytest.raises(ValueError, match="X must hold at least one example, got none"):
        larank.dask.fit_on_sample(kernel_map, [dask.delayed(X[:0])])


@pytest.mark.parametrize(
    ("method", "arrays", "error", "words"),
    [
        ("predict", lambda X, y: [X], TypeError, "X must be a Dask array"),
        ("predict", lambda X, y: [da.from_array(X[:, 0])], ValueError, "two dimensions"),
        ("predict", lambda X, y: [da.from_array(X[:, :2])], ValueError, "features"),
        ("predict_proba", lambda X, y: [da.from_array(X)], AttributeError, "predict_proba"),
        ("score", lambda X, y: [da.from_array(X), da.from_array(y[1:])], ValueError, "as long as"),
        ("score", lambda X, y: [da.from_array(each) for each in (X, y, np.zeros(len(y)))], ValueError, "above zero"),
        ("score", lambda X, y: [[dask.delayed(X)], [dask.delayed(y[1:])]], ValueError, "equally long in every partit"),
    ],
)
def test_what_cannot_be_asked_is_said_at_once(method, arrays, error, words):
    X, y = examples()
    with pytest.raises(error, match=words):
        getattr(larank.dask, method)(fitted(X, y), *arrays(X, y))


def test_without_dask_all_else_works_and_the_error_names_the_extra():
    code = """
import sys
sys.modules["dask"] = sys.modules["distributed"] = None
import larank
larank.LinearMulticlassSVC, larank.SequenceTagger
try:
    larank.dask
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'larank[dask]'" in done.stdout
