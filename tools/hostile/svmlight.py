"""Damaged svmlight files, read whole and in blocks."""

from collections.abc import Iterator
from random import Random

from tools.hostile.campaign import Attack, Case
from tools.hostile.datafiles import SOUND, STREAM, damaged_case, names_its_file

TEXTS = (
    b"1 1:0.5 3:2\n-1 2:1e3 # a comment\n+1 1:-.25 2:7 3:1e-5\n",
    b"0 0:1\n1 1:1 2147483646:3\n",
    b"\xef\xbb\xbfspam 1:1\r\nham 4:0\r\n\r\n# nothing\r\nspam\r\n",
    b"1.5 1:1 2:2 3:3 4:4 5:5 6:6\n" * 40,
    b"3\n" * 30,
)
WORDS = (b"qid:1", b"1:1", b"0:0", b"2147483647:1", b"2147483646:1", b"4294967297:1", b"1:nan", b"1:1e39", b":", b"1:")
READ = """
from larank.data import read_svmlight, write_svmlight
X, y = sound(*read_svmlight("data.svm", {}))
assert X.shape[1] < 2**31
if X.shape[1] and y.dtype.kind in "if":
    write_svmlight("again.svm", X, y)
    Z, z = read_svmlight("again.svm", n_features=X.shape[1], dtype=X.dtype)
    assert all(map(np.array_equal, (X.indptr, X.indices, X.data, y), (Z.indptr, Z.indices, Z.data, z)))
"""


def cases(random: Random) -> Iterator[Case]:
    while True:
        options = random.choice(("", "zero_based=True", "n_features=3", "n_features=0", "dtype='f4'"))
        if random.randrange(3):
            script = READ.format(random.choice((options, "zero_based='auto'", "zero_based='auto', n_features=3")))
        else:
            script = STREAM.format("data.svm", options, random.choice((1, 50, 1000, 10**6)))
        yield damaged_case(random, "data.svm", random.choice(TEXTS), WORDS, SOUND + script)


ATTACK = Attack(cases, names_its_file, warm_up=SOUND)
