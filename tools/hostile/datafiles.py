"""What attacks on data files share: what a refusal says, what holds of data that were read, what memory is due."""

from random import Random

from larank.data import DataFormatError
from larank.data.files import MOST_UNPACKED, UNPACKED_RATIO
from tools.hostile.campaign import Case
from tools.hostile.mutations import damaged, packed

SOUND = """
import numpy as np
import scipy.sparse as sp

def sound(X, y):
    values = X.data if sp.issparse(X) else X
    assert X.ndim == 2 and y.shape == X.shape[:1] and np.isfinite(values).all()
    if sp.issparse(X):
        starts = X.indptr.astype(np.int64)
        assert len(starts) == X.shape[0] + 1 and starts[0] == 0 and (np.diff(starts) >= 0).all()
        assert starts[-1] == len(X.indices) == len(X.data)
        assert not len(X.indices) or X.indices.min() >= 0 and X.indices.max() < X.shape[1]
    return X, y
"""
STREAM = """
from itertools import islice
from larank.data import ExampleFile
for block in islice(ExampleFile({!r}, {}).blocks({}), 1000):
    sound(block.X, block.y)
"""


def names_its_file(error: BaseException) -> bool:
    """Whether an error is what data files are refused with."""
    return isinstance(error, DataFormatError) and str(error).startswith("data.")


def damaged_case(random: Random, name: str, text: bytes, words: tuple[bytes, ...], script: str) -> Case:
    """A script that reads a damaged text, and the memory that is due if it is compressed."""
    content = packed(random, damaged(random, text, words))
    return Case(script, {name: content}, memory=due(content))


def due(content: bytes) -> int:
    """Bytes that a compressed file may take besides: what rows of one label take, for all that it may unpack to."""
    is_packed = content[:2] in (b"\x1f\x8b", b"BZ", b"\xfd7")
    return 32 * (MOST_UNPACKED + UNPACKED_RATIO * len(content)) if is_packed else 0
