"""Ways to damage a file: by bytes, by words, by lines, and by compressing it."""

import bz2
import gzip
import lzma
from functools import cache, partial
from random import Random

MOST_BYTES = 1 << 16  # of a damaged text

NUMBERS = (
    b"0 -0 1 -1 +1 00 1.0 .5 5. . - + e 1e 1e5 1e-5 1E+05 1e308 1.8e308 1e309 -1e309 1e-320 1e-400 1e99999 1e-99999 "
    b"1e9223372036854775807 0.1234567890123456789012345678901234567890 nan NaN -nan inf -Infinity infinity 1,5 1_000 "
    b"0x10 255 256 32767 32768 65535 65536 2147483646 2147483647 2147483648 4294967294 4294967295 4294967296 "
    b"9223372036854775806 9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616 "
    b"99999999999999999999999999 True None \xd9\xa3 \xef\xbc\x91"
).split()
SPECIAL = (b"\0", b"\n", b"\r", b"\r\n", b"\t", b" ", b"\v", b"\f", b"\x1a", b"\x1c", b"\x85", b"\xff", b"\xc0\x80")
SPECIAL += (b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b'"', b"'", b"#", b":", b",", b"|")
_PACKERS = (partial(gzip.compress, mtime=0), bz2.compress, partial(lzma.compress, preset=0))
_MEGABYTE = 1 << 20


def damaged(random: Random, text: bytes, words: tuple[bytes, ...] = ()) -> bytes:
    """A text with some damage, now and then none; `words` are put in besides numbers and special bytes."""
    known = (*NUMBERS, *SPECIAL, *words, *words)
    for _ in range(min(8, int(random.expovariate(0.6)))):
        text = random.choice((_bytes, _words, _lines))(random, text, known)[:MOST_BYTES]
    return text


def packed(random: Random, text: bytes) -> bytes:
    """A text as it is or, seldom, compressed; the compressed bytes may be damaged too, or those of a bomb."""
    way = random.randrange(60)
    if way >= 6:
        return text
    if way == 0 and not random.randrange(50):
        return bomb(random.randrange(3), random.choice((b"\0", b"1", b"\n", b"1 1:1\n", b"0,1\n", b"a b\n", b"a\n\n")))
    content = _PACKERS[way % 3](text)
    if way == 5:
        content += random.choice((content, content[:7], b"\0" * 5, _PACKERS[random.randrange(3)](text)))
    return damaged(random, content) if random.randrange(2) else content


@cache
def bomb(way: int, text: bytes) -> bytes:
    """A small file that unpacks to 32 megabytes: 32 times a packed one."""
    return _PACKERS[way](text * (_MEGABYTE // len(text))) * 32


def _span(random: Random, size: int) -> tuple[int, int]:
    """Two places, more often than not near each other."""
    first = random.randrange(size + 1)
    return first, min(size, first + int(random.expovariate(1 / random.choice((1, 4, size + 1)))))


def _bytes(random: Random, text: bytes, known: tuple[bytes, ...]) -> bytes:
    first, last = _span(random, len(text))
    before, span, after = text[:first], text[first:last], text[last:]
    match random.randrange(8):
        case 0:
            return before + after
        case 1:
            return before + span * random.choice((2, 3, 100)) + after
        case 2:
            return before + random.choice(known) + text[first:]
        case 3:
            return before + bytes([random.randrange(256)]) + text[first + 1 :]
        case 4:
            return before + bytes([text[first] ^ 1 << random.randrange(8)]) + text[first + 1 :] if after else text
        case 5:
            return before
        case 6:
            there = random.randrange(len(text) + 1)
            return text[:there] + span + text[there:]
        case _:
            return before + random.randbytes(last - first) + after


def _words(random: Random, text: bytes, known: tuple[bytes, ...]) -> bytes:
    """A word replaced, where words are what blanks, commas and colons leave."""
    separator = random.choice((b" ", b",", b":", b"\t", b"=", b"\n"))
    words = text.split(separator)
    at = random.randrange(len(words))
    words[at] = random.choice((random.choice(known), random.choice(words), b"", words[at] * random.choice((2, 500))))
    return separator.join(words)


def _lines(random: Random, text: bytes, known: tuple[bytes, ...]) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    first, last = _span(random, len(lines))
    match random.randrange(5):
        case 0:
            del lines[first:last]
        case 1:
            lines[first:first] = lines[first:last] * random.choice((1, 2, 50))
        case 2:
            random.shuffle(lines)
        case 3:
            lines[first:last] = [b"".join(lines[first:last]).replace(b"\n", random.choice((b"", b" ", b"\r", b"\r\n")))]
        case _:
            lines.insert(first, random.choice(known) + random.choice((b"\n", b"", b"\r")))
    return b"".join(lines)
