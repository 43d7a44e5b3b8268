"""Names and faces: photos show two people and captions name both, in no order. Who is who?

Digits stand for faces, and their labels for names. Run with the path of usps.npz for the digits of USPS; without it the
small ones that come with scikit-learn serve.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from larank import AmbiguousClassifier, LaRankClassifier

NAMES = np.array(["Ada", "Bob", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hal", "Ida", "Jon"])

if len(sys.argv) > 1:
    usps = np.load(sys.argv[1])
    faces, unseen = (np.float32((usps[part] + 1) / 2) for part in ("X_train", "X_test"))
    people, of_unseen = NAMES[usps["y_train"]], NAMES[usps["y_test"]]
else:
    X, y = load_digits(return_X_y=True)
    faces, unseen, people, of_unseen = train_test_split(np.float32(X / 16), NAMES[y], test_size=0.25, random_state=0)

# Photos of two: each face has the names of its caption as candidates.
random = np.random.default_rng(0)
faces, people = (each[: len(people) // 2 * 2] for each in (faces, people))
photos = random.permutation(len(faces)).reshape(-1, 2)
captions = np.empty((len(faces), 2), dtype=people.dtype)
captions[photos] = people[photos][:, None, :]

settings = {"kernel": "rbf", "gamma": 0.02, "C": 10.0, "random_state": 0}
guess = LaRankClassifier(**settings).fit(faces, captions[np.arange(len(faces)), random.integers(0, 2, len(faces))])
model = AmbiguousClassifier(**settings, max_iter=10, sharpness=20.0).fit(faces, captions.tolist())
told = LaRankClassifier(**settings).fit(faces, people)

print(f"{len(photos)} photos of two, {len(NAMES)} names. New faces that get their right name, by a model")
print(f"  trained on a name drawn from the caption   {guess.score(unseen, of_unseen):.1%}")
print(f"  trained on the names of the caption        {model.score(unseen, of_unseen):.1%}")
print(f"  trained on the right names                 {told.score(unseen, of_unseen):.1%}")

# Within a photo, the name is the one of the caption that the model scores higher.
scores = dict(zip(model.classes_, model.decision_function(faces).T, strict=True))
mine = np.array([[scores[name][face] for name in names] for face, names in enumerate(captions)])
named = captions[np.arange(len(faces)), mine.argmax(axis=1)]
print(f"{np.mean(named == people):.1%} of the faces in the photos have found their name; three captions:")
for first, second in photos[:3]:
    print(f"  {' and '.join(sorted(captions[first]))}: left {named[first]}, right {named[second]}")
result = model.result_
print(
    f"certificate: objective {result.primal:.0f}, none is below {result.dual:.0f}; {len(model.support_)} support faces"
)
