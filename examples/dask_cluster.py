"""A linear SVM, and a kernel machine by a map, on the workers of a Dask cluster; the models are ordinary ones."""

import dask.array as da
from distributed import Client, LocalCluster

import larank.dask
from larank import KernelPCAMap
from larank.data import load_letter

if __name__ == "__main__":
    letter = load_letter()
    X, y = (da.from_array(each, chunks=(4000, *each.shape[1:])) for each in (letter.X_train / 15, letter.y_train))
    X_test = da.from_array(letter.X_test / 15, chunks=(1000, -1))
    y_test = da.from_array(letter.y_test, chunks=1000)
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster):
        linear = larank.dask.LinearMulticlassSVC(tol=0.05, random_state=0).fit(X, y)
        rounds = linear.result_.operations["rounds"]
        print(f"linear: {rounds} rounds, relative gap {linear.result_.relative_gap:.3f}")
        print(f"linear: test error {1 - linear.score(X_test, y_test):.1%}")

        pca = larank.dask.fit_on_sample(KernelPCAMap(gamma=4.0, n_components=100), X, sample_size=1000, random_state=0)
        features, test_features = (larank.dask.transform(pca, each) for each in (X, X_test))
        kernel = larank.dask.LinearMulticlassSVC(tol=0.1, random_state=0).fit(features.persist(), y)
        print(f"with a kernel: test error {1 - kernel.score(test_features, y_test):.1%}")
    print(f"without a cluster: {linear.local().predict(letter.X_test[:5] / 15)}")
