"""Damaged delimited text, read whole and in blocks."""

from collections.abc import Iterator
from random import Random

from tools.hostile.campaign import Attack, Case
from tools.hostile.datafiles import SOUND, STREAM, damaged_case, names_its_file

TEXTS = (
    b"1,2,a\n3,4.5,b\n-1e3,0,a\n",
    b"x,y,label\n1,2,1\n3,4,2\n",
    b'\xef\xbb\xbf"x","label"\r\n"1","spam, or ham"\r\n.5,"two\nlines"\r\n',
    b"1\t2\t3\n4\t5\t6\n",
    b"0,0,0,0,0,0,1,0,0,7\n" * 50,
    b'id;name;born;paid\n1;"Ann ""A""; Bo";1.2.1990;31,5\n2;Cy;;\n3;"Di\n";03.04.1991;7,25\n4;Ed;?;NA\n' * 6,
    "größe,ort\r1,Köln\r2,Zürich\r".encode("utf-16"),
)
WORDS = (b"label", b'"', b'""', b'"a', b'a"b', b",,", b'"1"', b"#", b"x")
READ = 'from larank.data import read_csv\nsound(*read_csv("data.csv", {}))\n'
TABLE = """
import csv, io, warnings
from larank import TableEncoder
from larank.data.tables import TableFile
warnings.simplefilter("ignore")
file = TableFile("data.csv")
whole = file.read()
rows = sum(len(block.frame) for block in file.blocks({}))
assert rows == len(whole.frame) > 0
try:
    with whole.located():
        encoder = TableEncoder().fit(whole.frame)
except DataFormatError as error:
    assert "column" in str(error)
else:
    X = encoder.transform(whole.frame)
    sound(X, np.zeros(rows))
    assert X.shape[1] == len(encoder.get_feature_names_out())
    file.place(rows - 1)
"""
OPTIONS = ("", "label=0", "label='label'", "label=-2", "header=True", "header=False", "delimiter='\\t'", "dtype='f4'")


def cases(random: Random) -> Iterator[Case]:
    while True:
        options = random.choice(OPTIONS)
        if not random.randrange(3):
            script = "from larank.data import DataFormatError\n" + TABLE.format(random.choice((1, 10**6)))
        elif random.randrange(3):
            script = READ.format(options)
        else:
            script = STREAM.format("data.csv", options, random.choice((1, 50, 1000, 10**6)))
        yield damaged_case(random, "data.csv", random.choice(TEXTS), WORDS, SOUND + script)


ATTACK = Attack(cases, names_its_file, warm_up=f"{SOUND}\nimport polars, larank.tables.encoder\n")
