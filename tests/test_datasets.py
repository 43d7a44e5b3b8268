"""The data sets of the papers are read in the representation their experiments use."""

import numpy as np
import pytest

from larank.reproduce.datasets import DENSE_DATASETS, available, load_dense


def test_a_set_without_a_dense_form_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'news20' is not a data set; accepted are letter, usps, mnist"):
        load_dense("news20")


@pytest.mark.parametrize(
    ("name", "stored", "expected"),
    [("letter", [0, 15], [0.0, 15.0]), ("usps", [-1.0, 1.0], [0.0, 1.0]), ("mnist", [0, 255], [-1.0, 1.0])],
)
def test_dense_data_sets_have_the_scaling_of_the_larank_experiments(name, stored, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"{name}.npz does not exist"):
        load_dense(name)
    X = np.array([stored], dtype=np.float32 if name == "usps" else np.uint8)
    y = np.array([1], dtype=np.uint8)
    (tmp_path / name).mkdir()
    np.savez(tmp_path / name / f"{name}.npz", X_train=X, y_train=y, X_test=X, y_test=y)
    data = load_dense(name)
    for part in (data.X_train, data.X_test):
        assert part.dtype == np.float32
        assert part.flags.c_contiguous
        assert part.tolist() == [expected]
    assert data.y_train.dtype == data.y_test.dtype == np.int64


@pytest.mark.skipif(not all(map(available, DENSE_DATASETS)), reason="needs letter, usps and mnist (LARANK_DATA)")
def test_dense_data_sets_have_the_shapes_of_the_paper():
    shapes = {name: (data.X_train.shape, data.X_test.shape) for name in DENSE_DATASETS if (data := load_dense(name))}
    assert shapes == {
        "letter": ((16000, 16), (4000, 16)),
        "usps": ((7291, 256), (2007, 256)),
        "mnist": ((60000, 784), (10000, 784)),
    }
