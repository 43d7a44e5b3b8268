"""Damaged delimited text, read whole and in blocks."""

from collections.abc import Iterator
from random import Random

from tests.hostile.campaign import Attack, Case
from tests.hostile.datafiles import SOUND, damaged_case, names_its_file

TEXTS = (
    b"1,2,a\n3,4.5,b\n-1e3,0,a\n",
    b"x,y,label\n1,2,1\n3,4,2\n",
    b'\xef\xbb\xbf"x","label"\r\n"1","spam, or ham"\r\n.5,"two\nlines"\r\n',
    b"1\t2\t3\n4\t5\t6\n",
    b"0,0,0,0,0,0,1,0,0,7\n" * 50,
)
WORDS = (b"label", b'"', b'""', b'"a', b'a"b', b",,", b'"1"', b"#", b"x")
READ = 'from larank.data import read_csv\nsound(*read_csv("data.csv", {}))\n'
STREAM = """
from itertools import islice
from larank.data import ExampleFile
for block in islice(ExampleFile("data.csv", {}).blocks({}), 1000):
    sound(block.X, block.y)
"""
OPTIONS = ("", "label=0", "label='label'", "label=-2", "header=True", "header=False", "delimiter='\\t'", "dtype='f4'")


def cases(random: Random) -> Iterator[Case]:
    while True:
        options = random.choice(OPTIONS)
        if random.randrange(3):
            script = READ.format(options)
        else:
            script = STREAM.format(options, random.choice((1, 50, 1000, 10**6)))
        yield damaged_case(random, "data.csv", random.choice(TEXTS), WORDS, SOUND + script)


ATTACK = Attack(cases, names_its_file, warm_up=SOUND)
