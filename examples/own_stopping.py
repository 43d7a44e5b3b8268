"""Train half a second at a time, look at the certificate, decide, and keep the model in a file."""

import tempfile
import warnings
from pathlib import Path

import larank
from larank import LinearMulticlassSVC, TrainingWarning
from larank.data import load_letter

letter = load_letter()
X, y = letter.X_train / 15, letter.y_train

model = LinearMulticlassSVC(C=10, tol=1e-9, time_limit=0.5, warm_start=True, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", TrainingWarning)  # ending early is the plan here
    for attempt in range(1, 6):
        model.fit(X, y)  # goes on from where the last attempt ended
        result = model.result_
        print(
            f"attempt {attempt}: {result.status} after {result.iterations:.0f} passes, objective {result.primal:.1f}, "
            f"the optimum is at most {result.relative_gap:.2%} lower"
        )
        if result.relative_gap < 0.003:
            break

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "letter.larank"
    larank.save(model, file)
    again = larank.load(file)
    same = (again.predict(letter.X_test / 15) == model.predict(letter.X_test / 15)).all()
    print(f"saved {file.stat().st_size} bytes; loaded: same predictions {same}, gap {again.result_.gap:.1f}")
