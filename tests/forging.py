"""Model files taken apart and put together again, with a right digest and whatever content."""

import json
from hashlib import sha256

import numpy as np

_BEFORE_DIGEST = rb'{"__metadata__":{"larank":"{\"digest\": \"'


def split(content: bytes) -> tuple[dict, dict, dict[str, np.ndarray]]:
    """The header of a file, its description, and its arrays."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    description = json.loads(header.pop("__metadata__")["larank"])
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        dtype = {"B": "?", "F": "f", "I": "i", "U": "u"}[entry["dtype"][0]]
        dtype = "?" if dtype == "?" else f"<{dtype}{int(entry['dtype'][1:]) // 8}"
        raw = content[8 + length + first : 8 + length + last]
        arrays[name] = np.frombuffer(raw, dtype).reshape(entry["shape"]).copy()
    return header, description, arrays


def joined(description: object, arrays: dict[str, np.ndarray], header: dict | None = None) -> bytes:
    """A file of these, whatever they are; `header` has entries that are said of arrays instead of the truth."""
    told, data = (
        {"__metadata__": {"larank": description if isinstance(description, str) else json.dumps(description)}},
        b"",
    )
    for name, array in arrays.items():
        kind = {"f": "F", "i": "I", "u": "U"}.get(array.dtype.kind, "BOOL")
        raw = np.ascontiguousarray(array).tobytes()
        dtype = kind if kind == "BOOL" else f"{kind}{8 * array.dtype.itemsize}"
        told[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps({**told, **(header or {})}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return sealed(len(text).to_bytes(8, "little") + text + data)


def sealed(content: bytes) -> bytes:
    """The file with the digest that belongs to it, if it has one: whoever forges a file can compute it, too."""
    begins = content.find(_BEFORE_DIGEST, 8, 8 + len(_BEFORE_DIGEST))
    if begins < 0:
        return content
    first = begins + len(_BEFORE_DIGEST)
    blank = content[:first] + b"0" * 64 + content[first + 64 :]
    return blank[:first] + sha256(blank).hexdigest().encode() + blank[first + 64 :]
