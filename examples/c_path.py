"""Train a whole path of costs on LETTER, each model started from the one before, and choose C on held-out examples."""

from sklearn.model_selection import train_test_split

from larank import LinearMulticlassSVC
from larank.data import load_letter

letter = load_letter()
X_train, X_valid, y_train, y_valid = train_test_split(
    letter.X_train / 15, letter.y_train, test_size=0.25, random_state=0
)
costs = [0.01, 0.03, 0.1, 0.3, 1, 3]
path = LinearMulticlassSVC(tol=0.01, random_state=0).path(X_train, y_train, costs)

print("     C  validation error  relative gap  passes  seconds")
for model in path:
    error, result = 1 - model.score(X_valid, y_valid), model.result_
    print(
        f"{model.C:6g} {error:17.2%} {result.relative_gap:13.1e} {result.iterations:7.1f} {result.seconds:8.2f}",
    )

best = max(path, key=lambda model: model.score(X_valid, y_valid))
print(f"best C: {best.C:g}, test error {1 - best.score(letter.X_test / 15, letter.y_test):.2%}")
