"""Compute a kernel matrix once and train on parts of it: the mean of two kernels, C chosen by cross-validation."""

import numpy as np
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel
from sklearn.model_selection import GridSearchCV

from larank import LaRankClassifier
from larank.data import load_letter

letter = load_letter()
X_train, y_train = letter.X_train[:2000] / 15, letter.y_train[:2000]
X_test, y_test = letter.X_test[:1000] / 15, letter.y_test[:1000]


def kernel(A, B):
    return (laplacian_kernel(A, B, gamma=1.0) + polynomial_kernel(A, B, degree=3, gamma=0.5)) / 2


K_train = kernel(X_train, X_train)  # square: kernel values between the training examples
K_test = kernel(X_test, X_train)  # a row per test example, a column per training example

search = GridSearchCV(LaRankClassifier("precomputed", random_state=0), {"C": [0.1, 1, 10]}, cv=3)
search.fit(K_train, y_train)  # the search takes rows and columns of each fold out of the matrix
for C, score in zip(search.cv_results_["param_C"], search.cv_results_["mean_test_score"], strict=True):
    print(f"C = {C:4}: error {1 - score:.2%} by cross-validation")

model = search.best_estimator_
print(f"best C: {model.C:g}, test error {1 - model.score(K_test, y_test):.2%}")

support = model.support_  # the other columns of K_test do not matter
only_support = np.zeros_like(K_test)
only_support[:, support] = kernel(X_test, X_train[support])
same = (model.predict(only_support) == model.predict(K_test)).all()
print(f"{len(support)} of {len(y_train)} columns are looked at: same predictions {same}")
