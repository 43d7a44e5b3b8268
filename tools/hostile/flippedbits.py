"""Model files with flipped bits, as disks and networks make them: each must be refused."""

from collections.abc import Iterator
from random import Random

from tools.hostile.campaign import Attack, Case
from tools.hostile.modelfiles import corpus, is_refused

_SCRIPT = """
from larank.data.models import load

load("model.larank")
raise AssertionError("a file that is not as it was written was loaded")
"""


def flipped(random: Random, content: bytes) -> bytes:
    """The file with one bit flipped, or a few."""
    damaged = bytearray(content)
    length = 8 + int.from_bytes(content[:8], "little")
    most = random.choice((length, len(content)))  # the header is smaller than the arrays, and more depends on it
    for place in random.sample(range(8 * most), random.choice((1, 1, 1, 2, 8))):
        damaged[place // 8] ^= 1 << place % 8
    return bytes(damaged)


def cases(random: Random) -> Iterator[Case]:
    """Files of any of the models."""
    while True:
        _, content = random.choice(corpus())
        yield Case(_SCRIPT, {"model.larank": flipped(random, content)})


ATTACK = Attack(cases, is_refused, warm_up="import polars, larank.data.models")
