"""Draw the places of mutants: `python -m tools.mutants.drawing AREA COUNT` prints rows for table.toml.

All tokens of the area's regions that one of the operators below can change are candidates. They are shuffled with the
area's seed, so the same tree gives the same order. A row that cannot change what the program does stays in the table
with the reason, and the next draw takes its place.
"""

import argparse
import ast
import json
import random
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("table.toml")

FLIPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
FLIPS |= {"+": "-", "-": "+", "*": "/", "/": "*", "&&": "||", "||": "&&", "+=": "-=", "-=": "+="}
FLIPS |= {"and": "or", "or": "and", "is not": "is", "is": "is not", "not in": "in", "in": "not in"}
CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
CALLS |= {"argmin": "argmax", "argmax": "argmin", "smaller": "larger", "larger": "smaller"}
CALLS |= {"none_of": "any_of", "any_of": "none_of", "lower_bound": "upper_bound", "floor": "ceil", "ceil": "floor"}


class Candidate(NamedTuple):
    """A piece of a file and what takes its place; a piece that ends with a semicolon is a statement of C++."""

    start: int
    end: int
    new: str


def changed_number(text: str) -> str:
    """Return another number: the next integer, or twice the value."""
    if text.isdigit():
        return str(int(text) + 1)
    return "1.0" if float(text) == 0 else repr(2 * float(text))


# ---- Python ----


def of_python(text: str) -> Iterator[Candidate]:
    """Yield the candidates of a module, without annotations, docstrings and texts of messages."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    place = [0]  # of characters, by bytes
    for n, letter in enumerate(text):
        place += [n + 1] * len(letter.encode())

    def span(node: Any) -> tuple[int, int]:
        return place[starts[node.lineno - 1] + node.col_offset], place[
            starts[node.end_lineno - 1] + node.end_col_offset
        ]

    def flipped(node: ast.AST, left: Any, right: Any) -> Iterator[Candidate]:
        (start, end), between = span(node), (span(left)[1], span(right)[0])
        token = text[slice(*between)].strip("()\n ")
        if token in FLIPS:
            at = text.index(token, between[0])
            yield Candidate(start, end, text[start:at] + FLIPS[token] + text[at + len(token) : end])

    def visit(node: Any) -> Iterator[Candidate]:
        skipped = {"annotation", "returns", "exc"} | (
            {"decorator_list"} if isinstance(node, ast.FunctionDef) else set()
        )
        match node:
            case ast.JoinedStr():
                return
            case ast.Compare(left=left, comparators=[right]) | ast.BinOp(left=left, right=right):
                yield from flipped(node, left, right)
            case ast.BoolOp(values=[*_, left, right]):
                yield from flipped(node, left, right)
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield Candidate(*span(node), text[slice(*span(operand))])
            case ast.Constant(value=bool()):
                yield Candidate(*span(node), str(not node.value))
            case ast.Constant(value=int() | float()):
                yield Candidate(*span(node), changed_number(text[slice(*span(node))].replace("_", "")))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CALLS:
                (start, end), at = span(node), span(node.func)[1]
                yield Candidate(start, end, text[start : at - len(name)] + CALLS[name] + text[at:end])
            case ast.AugAssign(target=target, value=value):
                yield from flipped(node, target, value)
                yield Candidate(*span(node), "pass")
            case ast.Expr(value=ast.Call()) | ast.Raise(exc=ast.expr()) | ast.Continue():
                yield Candidate(*span(node), "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
                yield Candidate(*span(node), "pass")
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and name not in skipped:
                    yield from visit(child)

    yield from visit(ast.parse(text))


# ---- C++ ----

LEVELS = [{"||"}, {"&&"}, {"==", "!="}, {"<", "<=", ">", ">="}, {"+", "-"}, {"*", "/"}]
LEVEL = {token: level for level, tokens in enumerate(LEVELS) for token in tokens}
_ENDS = r"[;,?]|(?<!:):(?!:)|(?<= )(?:[-+*/]?=)(?= )|\breturn\b"
_TOKEN = re.compile(
    rf"(?P<end>{_ENDS})|(?P<op>(?<= )(?:&&|\|\||[=!<>]=|[-+*/<>])(?= ))|(?P<open>[(\[{{])|(?P<close>[)\]}}])"
)
_NUMBER = re.compile(r"(?<![\w.<])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.>'])")
_STATEMENT = re.compile(
    r"(?:if \(.*\) |else |for \(.*\) )?"
    r"(?P<what>(?:\+\+|--)?[a-z_][\w.\[\]]*(?:->?\w+|\(.*\))*(?: [-+*/]?= .*|\(.*\))?;"
    r"|continue;|return(?: \w+)?;)(?: *//.*)?"
)
_DECLARED = re.compile(r"(?:const|auto|using|typename|static|constexpr|delete|private|public)\b")


def operand(text: str, at: int, level: int, step: int) -> int:
    """Return where the operand of an operator ends, to the left of `at` or to the right."""
    depth, edge = 0, (text.rfind("\n\n", 0, at) if step < 0 else at)
    tokens = list(_TOKEN.finditer(text, max(0, edge if step < 0 else at), at if step < 0 else len(text)))
    for token in reversed(tokens) if step < 0 else tokens:
        opens, closes = token["open"], token["close"]
        if (opens and step > 0) or (closes and step < 0):
            depth += 1
        elif opens or closes:
            depth -= 1
            if depth < 0:
                return token.end() if step < 0 else token.start()
        elif depth == 0 and (token["end"] or LEVEL[token["op"]] < level + (step > 0)):
            return token.end() if step < 0 else token.start()
    raise ValueError(f"the operand at {text[at - 20 : at + 20]!r} has no end")


def of_cpp(text: str) -> Iterator[Candidate]:
    """Yield the candidates of a file of the core, without comments and numbers that the compiler must know."""
    code = re.sub(r"//.*|\"[^\"\n]*\"|.*prefetch.*", lambda found: "~" * len(found[0]), text)
    for token in _TOKEN.finditer(code):
        if op := token["op"]:
            start, end = operand(code, token.start(), LEVEL[op], -1), operand(code, token.end(), LEVEL[op], 1)
            start, end = start + len(code[start:]) - len(code[start:].lstrip()), len(code[:end].rstrip())
            yield Candidate(start, end, text[start : token.start()] + FLIPS[op] + text[token.end() : end])
    for number in _NUMBER.finditer(code):
        line = code[code.rfind("\n", 0, number.start()) + 1 : number.start()]
        if not re.search(r"constexpr|#|template|~|case ", line):
            yield Candidate(*number.span(), changed_number(number[0]))
    for call in re.finditer(rf"\b({'|'.join(CALLS)})(?:<\w+>)?\(", code):
        start = code.rfind("std::", 0, call.start()) if code[: call.start()].endswith("std::") else call.start()
        end = operand(code, call.end(), 9, 1)
        while code[end] != ")":
            end = operand(code, end + 1, 9, 1)
        yield Candidate(start, end + 1, text[start : call.start()] + CALLS[call[1]] + text[call.end(1) : end + 1])
    for negation in re.finditer(r"!(?=[\w(])([\w.:>-]+|(?=\())", code):
        end = negation.end()
        if code[end] == "(":
            end = operand(code, end + 1, -9, 1) + 1
        yield Candidate(negation.start(), end, text[negation.start() + 1 : end])
    at = 0
    for line in code.splitlines(keepends=True):
        found = _STATEMENT.fullmatch(line.strip())
        if found and not _DECLARED.match(found["what"]) and not re.match(r"\w+ \w+[;=({]", found["what"]):
            start = at + line.index(found["what"])
            yield Candidate(start, start + len(found["what"]), "")
        at += len(line)


# ---- Rows of the table ----


def candidates(area: dict[str, Any]) -> Iterator[tuple[str, Candidate]]:
    """Yield files and candidates of an area; a region is a file, its first text and the text before which it ends."""
    for path, *edges in area["regions"]:
        text = (ROOT / path).read_text()
        first = text.index(edges[0]) if edges else 0
        last = text.index(edges[1], first) if edges[1:] else len(text)
        for found in of_python(text) if path.endswith(".py") else of_cpp(text):
            if first <= found.start and found.end <= last:
                yield path, found


def described(text: str, at: Candidate) -> dict[str, Any]:
    """Return where a candidate is: the line, with those below it until no other place has the same text."""
    old = text[at.start : at.end]
    first = text.rfind("\n", 0, at.start) + 1
    first += len(text[first:]) - len(text[first:].lstrip())
    end = text.index("\n", at.start)
    while text.count(text[first:end]) > 1:
        end = text.index("\n", end + 1)
    nth = len(re.findall(f"(?={re.escape(old)})", text[first : at.start + len(old) - 1]))
    return {"line": text[first:end], "old": old, "new": at.new} | ({"nth": nth} if nth else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("area")
    parser.add_argument("count", type=int)
    parser.add_argument("--skip", type=int, default=0, help="draws that are in the table already")
    arguments = parser.parse_args()
    area = tomllib.loads(TABLE.read_text())["areas"][arguments.area]
    drawn = list(dict.fromkeys(candidates(area)))
    random.Random(f"{arguments.area} {area['seed']}").shuffle(drawn)
    print(f"# {len(drawn)} candidates")
    for number, (path, at) in enumerate(drawn[: arguments.count], 1):
        if number <= arguments.skip:
            continue
        text = (ROOT / path).read_text()
        row = {"id": f"{arguments.area}-{number}", "file": path, **described(text, at)}
        print(
            "\n[[mutants]]",
            *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in row.items()),
            sep="\n",
        )


if __name__ == "__main__":
    main()
