"""Damaged files in columns, read as lists and in blocks."""

from collections.abc import Iterator
from random import Random

from tools.hostile.campaign import Attack, Case
from tools.hostile.datafiles import damaged_case, names_its_file

TEXTS = (
    b"Confidence NN B-NP\nin IN B-PP\n\nthe DT B-NP\npound NN I-NP\n",
    b"\xef\xbb\xbfword\tO\r\nNew York\tB\r\n\r\n# a comment\r\nthe\tO\r\n",
    "über ADJ\nстрана NOUN\n日本 PROPN\n\n\n😀 X\n".encode(),
    b"a O\n" * 100 + b"\n" + b"b I\n" * 3,
)
WORDS = (b"# ", b"\t", b" ", b"\n\n", b"-DOCSTART-", b"B-NP", "é".encode())
READ = """
from larank.data.columns import read_conll, write_conll
sentences, labels = read_conll("data.txt", {})
assert all(sentences)
if labels is not None:
    assert list(map(len, sentences)) == list(map(len, labels))
"""
STREAM = """
from larank.data.columns import ConllFile
for block in ConllFile("data.txt", {}).blocks({}):
    assert block.starts[0] == 0 and block.starts[-1] == block.n_tokens == len(block.lines) and len(block.sentences())
"""
OPTIONS = ("", "label=None", "label=0", "label=5", "separator='\\t'", "comment='#'", "columns=('word',)")


def cases(random: Random) -> Iterator[Case]:
    while True:
        options = random.choice(OPTIONS)
        script = READ.format(options) if random.randrange(2) else STREAM.format(options, random.choice((1, 3, 10**6)))
        yield damaged_case(random, "data.txt", random.choice(TEXTS), WORDS, script)


ATTACK = Attack(cases, names_its_file, warm_up="import larank.data.columns")
