"""The data set that comes with the library, and where to find the others."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TrainTest:
    """A data set with its customary split."""

    X_train: NDArray[np.float64]
    y_train: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]


def load_letter() -> TrainTest:
    """Load the LETTER data set of the LaRank paper, which comes with the library.

    Returns
    -------
    TrainTest
        16000 training and 4000 test examples, 16 features with their raw values 0 to 15, labels "A" to "Z".

    Notes
    -----
    P. W. Frey and D. J. Slate, Letter Recognition Using Holland-Style Adaptive Classifiers, Machine Learning
    6, 1991; from the UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> letter.X_train.shape, letter.y_train[:3].tolist()
    ((16000, 16), ['T', 'I', 'D'])
    """
    letters = np.array([chr(ord("A") + k) for k in range(26)])
    source = resources.files("larank").joinpath("data", "letter.npz")
    with source.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return TrainTest(
            archive["X_train"].astype(np.float64),
            letters[archive["y_train"]],
            archive["X_test"].astype(np.float64),
            letters[archive["y_test"]],
        )


def data_directory() -> Path:
    """Find the folder of the larger data sets.

    Returns
    -------
    Path
        What the environment variable `LARANK_DATA` says, else `shared/data` in the working directory or the
        nearest directory above it that has one, as beside a checkout of the repository.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    """
    named = os.environ.get("LARANK_DATA")
    if named:
        if not Path(named).is_dir():
            raise FileNotFoundError(f"the environment variable LARANK_DATA names {named!r}, which is not a directory")
        return Path(named)
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / "shared" / "data").is_dir():
            return directory / "shared" / "data"
    raise FileNotFoundError(
        f"no data sets found: set the environment variable LARANK_DATA to their folder, or put them into "
        f"shared/data beside the repository (looked in {here} and above)"
    )
