"""Damaged NumPy archives: their arrays, the headers of these, and the zip file around them."""

import io
import zipfile
from collections.abc import Iterator
from random import Random

import numpy as np

from tools.hostile.campaign import Attack, Case
from tools.hostile.datafiles import SOUND, due, names_its_file
from tools.hostile.mutations import damaged, packed

PARTS = {
    "data": np.arange(1.0, 6.0),
    "indices": np.array([0, 2, 1, 0, 2], np.int32),
    "indptr": np.array([0, 2, 2, 3, 5], np.int32),
    "shape": np.array([4, 3]),
}
y = np.array([1, 2, 1, 2])
ARCHIVES = (
    {"X": np.arange(12.0).reshape(4, 3), "y": y},
    {"X": np.eye(4, dtype=np.uint8), "y": np.array(["spam", "ham", "spam", "é"])},
    {**PARTS, "format": np.array(b"csr"), "y": y},
    {f"X_{name}": array for name, array in PARTS.items()} | {"y": y},
)
TYPES = ("f8", "f4", "f2", "f16", "i8", "i1", "u8", "u4", "?", "U5", "S3", "c16", "m8[s]", "M8[D]", "V8", "V0", "U0")
TYPES += (">f8", ">i4", "f4,f4", "(2,2)f4")
NUMBERS = (0, 1, -1, 3, 4, 5, 2**31 - 1, -(2**31), 2_000_000_000, 2**62, 2**63 - 1, -(2**63), 10**9)
SHAPES = ("()", "(4,)", "(4, 3)", "(3, 4)", "(0,)", "(-1,)", "(4, -3)", "(4, 3, 1)", "(1000000000000,)", "(4.0,)", "4")
SHAPES += ("(4, 9223372036854775807)", "(18446744073709551616, 2)", "('4',)", "[4, 3]", "None", "(True, 3)", "(1e400,)")
WORDS = (b"'descr'", b"'shape'", b"<f8", b"|O", b"<U250000000", b"<f99", b"fortran_order", b"PK\x03\x04", b"-" * 5000)
SCRIPT = 'from larank.data import read_npz\nX, y = sound(*read_npz("data.npz", {}))\nassert y.dtype.kind in "biufSU"'


def cases(random: Random) -> Iterator[Case]:
    while True:
        arrays = dict(random.choice(ARCHIVES))
        for _ in range(random.choice((0, 1, 1, 2))):
            change(random, arrays)
        content = packed(random, zipped(random, arrays))
        if not random.randrange(3):
            content = damaged(random, content, WORDS)
        options = random.choice(("", "", "", "dtype='f4'", "split='train'"))
        yield Case(SOUND + SCRIPT.format(options), {"data.npz": content}, memory=due(content))


def change(random: Random, arrays: dict[str, np.ndarray]) -> None:
    """Spoil an array, or leave it out."""
    name = random.choice(sorted(arrays))
    array = arrays.pop(name)
    match random.randrange(5):
        case 0:
            arrays[name] = np.resize(array, random.choice(((), (0,), (4,), (5,), (4, 3), (3, 4), (4, 3, 1), (0, 3))))
        case 1:
            arrays[name] = np.zeros(array.shape, random.choice(TYPES))
        case 2 if array.dtype.kind in "iuf" and array.size:
            arrays[name] = array.copy()
            at = random.randrange(array.size)
            with np.errstate(all="ignore"):
                value = np.array(random.choice((*NUMBERS, *((np.nan, np.inf) if array.dtype.kind == "f" else ()))))
                arrays[name].flat[at:] = value.astype(array.dtype)
        case 3:
            arrays[random.choice(("X", "y", "data", "indptr", "shape", "X_data", "../y", "x" * 300))] = array
        case _:
            pass


def zipped(random: Random, arrays: dict[str, np.ndarray]) -> bytes:
    """An archive, whose members may have damaged headers, or be compressed in other ways."""
    file = io.BytesIO()
    way = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) * 10 + (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(file, "w", way) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, version=random.choice((None, (1, 0), (2, 0), (3, 0))))
            content = member.getvalue()
            if not random.randrange(6):
                content = content.replace(str(array.shape).encode(), random.choice(SHAPES).encode(), 1)
            elif not random.randrange(6):
                content = damaged(random, content, WORDS)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), content, way)
    return file.getvalue()


ATTACK = Attack(cases, names_its_file, warm_up=SOUND)
