"""A tagger that trains in one pass, keeps its tags well formed, goes on learning and says why."""

import numpy as np

from larank import SequenceTagger
from larank.sequence.entities import entity_report

CITIES = ["Paris", "New York", "San Francisco", "Oslo", "Rio de Janeiro"]
PEOPLE = ["Ada Lovelace", "Emmy Noether", "Alan Turing", "Grace Hopper"]
FRAMES = ["{p} lives in {c} .", "{p} and {p} met in {c} .", "from {c} to {c} by train", "it rains in {c} today"]


def sentence(random):
    """A sentence and the tags of its people and places."""
    words, tags = [], []
    for word in FRAMES[random.integers(len(FRAMES))].split():
        names = {"{p}": (PEOPLE, "PER"), "{c}": (CITIES, "LOC")}.get(word)
        if names is None:
            words, tags = [*words, word], [*tags, "O"]
            continue
        name = random.choice(names[0]).split()
        words, tags = [*words, *name], [*tags, f"B-{names[1]}", *[f"I-{names[1]}"] * (len(name) - 1)]
    return words, tags


random = np.random.default_rng(0)
train, test = [sentence(random) for _ in range(60)], [sentence(random) for _ in range(100)]
X, y = zip(*train, strict=True)
X_test, y_test = zip(*test, strict=True)

tagger = SequenceTagger(constraints="BIO", random_state=0).fit(X, y)
print(entity_report(y_test, tagger.predict(X_test)))
print(f"gap {tagger.result_.gap:.4f} of {tagger.result_.primal:.4f}, {tagger.result_.seconds:.3f} s")

# A name and a kind of entity never seen before.
tagger.partial_fit([["the", "Titanic", "sank"]] * 10, [["O", "B-SHIP", "O"]] * 10)
print(tagger.predict([["Alan", "Turing", "saw", "the", "Titanic"]])[0])

best, second = tagger.predict_nbest([["Emmy", "Noether", "left", "San", "Francisco"]], n=2)[0]
print(best.labels, f"beats {second.labels} by {best.margin:.2f}")
print(tagger.explain(["in", "Oslo", "today"], top=3))
