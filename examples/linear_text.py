"""Train on sparse, text-like data: `python examples/linear_text.py [FILE.svm]`, else on synthetic documents."""

import sys

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split

from larank import LinearMulticlassSVC
from larank.data import read_svmlight


def documents(n=4000, words=20_000, topics=20, length=80, seed=0):
    """Word counts: every topic prefers its own words, all words are as rare as in real text."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(topics, size=n)
    word = (words * rng.random((n, length)) ** 3).astype(int)
    own = rng.random((n, length)) < 0.15
    word[own] = (word[own] * topics + np.repeat(topic, length).reshape(n, length)[own]) % words
    rows = np.repeat(np.arange(n), length)
    counts = csr_matrix((np.ones(n * length), (rows, word.ravel())), shape=(n, words))
    return TfidfTransformer().fit_transform(counts), topic


X, y = read_svmlight(sys.argv[1]) if len(sys.argv) > 1 else documents()
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
print(f"{X_train.shape[0]} examples, {X_train.shape[1]} features, {X_train.nnz} values, {len(np.unique(y))} classes")
for formulation in ("crammer-singer", "weston-watkins", "one-vs-rest"):
    model = LinearMulticlassSVC(formulation, random_state=0).fit(X_train, y_train)
    result = model.result_
    print(
        f"{formulation:15} test error {1 - model.score(X_test, y_test):6.2%}, objective {result.primal:10.3f}, "
        f"relative gap {result.relative_gap:.1e}, {result.iterations:5.1f} passes, {result.seconds:.2f} s"
    )
