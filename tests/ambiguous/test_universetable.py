"""A table holds a universe as it is, and what is wrong in one is said with the place."""

import gzip
from random import Random

import pytest

from larank.ambiguous.universe import Relation, Universe, UniverseError
from larank.ambiguous.universetable import read_table, write_table
from larank.ambiguous.verbs import CONCEPTS, FRAMES, Event, event, execute, is_coherent, new_universe
from larank.data import DataFormatError

SMALL = """\
concept,kind,words,location:room:acyclic,likes,state=asleep|awake
john,actor,john he,kitchen,mary,awake
mary,actor,mary she,hall,john,
kitchen,room,kitchen there,,,
hall,room,hall there
box
"""


@pytest.fixture
def table_of(tmp_path):
    def read(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(path)

    return read


def test_a_row_is_a_concept_and_a_column_a_relation(table_of):
    table = table_of(SMALL)
    universe = table.universe
    assert dict(universe.concepts) == {
        "john": "actor",
        "mary": "actor",
        "kitchen": "room",
        "hall": "room",
        "box": "thing",  # where no kind is given
    }
    assert dict(universe.table("location")) == {"john": "kitchen", "mary": "hall"}
    assert dict(universe.table("likes")) == {"john": "mary", "mary": "john"}
    assert dict(universe.table("state")) == {"john": "awake"}
    assert table.words == {
        "john": ("john",),
        "he": ("john",),
        "mary": ("mary",),
        "she": ("mary",),
        "kitchen": ("kitchen",),
        "there": ("kitchen", "hall"),
        "hall": ("hall",),
    }


def test_the_name_of_a_column_says_what_its_relation_is_about_and_leads_to(table_of):
    any_kind = frozenset({"actor", "room", "thing"})
    head = "concept,kind,a,b:acyclic,c:room,d=x|y,e=,f(actor|thing):room|actor:acyclic=x,containedby"
    universe = table_of(f"{head}\njohn,actor,,,,,red\nhall,room,,,,,blue\nbox,,,,,,\n").universe
    assert list(universe.relations.values()) == [
        Relation("a", any_kind, any_kind),
        Relation("b", any_kind, any_kind, acyclic=True),
        Relation("c", any_kind, frozenset({"room"})),
        Relation("d", any_kind, values=frozenset({"x", "y"})),
        Relation("e", any_kind, values=frozenset({"red", "blue"})),
        Relation("f", frozenset({"actor", "thing"}), frozenset({"room", "actor"}), frozenset({"x"}), acyclic=True),
        Relation("containedby", any_kind, any_kind, acyclic=True),
    ]


def test_tables_may_have_tabs_quotes_and_empty_lines(table_of):
    table = table_of(SMALL)
    assert table_of(gzip.compress(SMALL.replace(",", "\t").encode()), "table.tsv.gz") == table
    quoted = "\n".join('"' + line.replace(",", '","') + '"' for line in SMALL.splitlines())
    assert table_of(f"{quoted}\r\n\r\n") == table
    assert table_of("concept\nball\n").universe == Universe({"ball": "thing"}, [])


@pytest.mark.parametrize("name", ["house.csv", "house.tsv", "house.csv.gz"])
def test_a_universe_that_is_written_and_read_is_the_same(name, tmp_path):
    house = new_universe(Random(0))
    words = {"father": ("john",), "he": ("john", "mark")}
    write_table(tmp_path / name, house, words)
    table = read_table(tmp_path / name)
    assert table.universe == house
    assert table.words == words


def test_only_the_relations_asked_for_are_written(tmp_path):
    house = new_universe(Random(0))
    write_table(tmp_path / "house.csv", house, relations=["location"])
    universe = read_table(tmp_path / "house.csv").universe
    assert list(universe.relations) == ["location"]
    assert universe.table("location") == house.table("location")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the table is empty"),
        ("\n , \n", "line 1: the table is empty"),
        ("concept,kind\n", "line 1: there are no concepts"),
        ("name,kind\na,b\n", "line 1: there is no column 'concept'; the columns are 'name', 'kind'"),
        ("concept;kind\na;b\n", "line 1: there is no column 'concept'; the columns are 'concept;kind'"),
        ("concept,,kind\na\n", "line 1: column 2 has no name"),
        ("concept,likes,likes\na\n", "line 1: there are two columns 'likes'"),
        ("concept,likes,likes:acyclic\na\n", "line 1: relations has 'likes' twice"),
        ("concept,is like\na\n", "line 1, column 'is like': a relation is called NAME"),
        ("concept,kind:room\na\n", "line 1, column 'kind:room': kind is no relation"),
        ("concept,state=a||b\na\n", "line 1, column 'state=a||b': a value is ''"),
        ("concept,location:rom\na\n", "line 1: the relation 'location' speaks of the kind 'rom'"),
        ("concept,kind\na,b\n\na,c\n", "line 4, column 'concept': 'a' is in line 2 already"),
        ("concept,kind\n,b\n", "line 2, column 'concept': the concept is ''; a name has"),
        ("concept\n-\n", "line 2, column 'concept': the concept is '-'; a name .* is not -, which means"),
        ("concept\nthe box\n", "line 2, column 'concept': the concept is 'the box'; a name has no blanks"),
        ("concept\n#box\n", "line 2, column 'concept': the concept is '#box'"),
        ("concept\nbox(1)\n", r"line 2, column 'concept': the concept is 'box\(1\)'"),
        ("concept\nbo\0x\n", "line 2, column 'concept': the concept is"),
        ("concept,kind\na,b:c\n", "line 2, column 'kind': the kind is 'b:c'; a kind has no :"),
        ("concept,kind\na,b,c\n", "line 2: there are 3 cells for 2 columns; 'c' is one too many"),
        ("concept,likes\na,the b\n", "line 2, column 'likes': the value is 'the b'"),
        ("concept,likes\na,b\nb,c\n", "line 3, column 'likes': 'c' is no concept of this table; .* is called 'likes='"),
        ("concept,state=x|y\na,x\nb,z\n", r"line 3, column 'state=x\|y': state\(b\) cannot be 'z'.* may be 'x', 'y'"),
        ("concept,kind,at:room\na,x,b\nb,room,\nc,x,a\n", r"line 4, column 'at:room': at\(c\) cannot be 'a'.* kind x"),
        ("concept,kind,at(x)\na,x,\nb,y,a\n", r"line 3, column 'at\(x\)': at is not of 'b', of kind y; it is of x"),
        (b"concept\nball\ncaf\xe9\n", "line 3: the text is not UTF-8"),
        ('concept\n"a\n', "line 2: unexpected end of data"),
    ],
)
def test_what_is_no_table_is_refused_with_the_place(table_of, text, message):
    with pytest.raises(DataFormatError, match=rf"table\.csv, {message}"):
        table_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("concept,containedby\nbox,box\n", r"line 2, column 'containedby': containedby\(box\) = box leads"),
        ("concept,containedby\nbox,bag\nbag,ball\nball,box\n", r"line 4, .*: containedby\(ball\) = box leads"),
        ("concept,containedby\nbox,box\nbag,\nball,bag\nhat,bag\n", r"line 2, .*: containedby\(box\) = box leads"),
        ("concept,in:acyclic,on:acyclic\nbox,bag,\nbag,,box\n", "line 3, column 'on:acyclic': .* back to itself"),
    ],
)
def test_what_would_contain_itself_is_refused(table_of, text, message):
    with pytest.raises(DataFormatError, match=message):
        table_of(text)


def test_other_relations_may_go_round(table_of):
    universe = table_of("concept,likes\njohn,john\nmary,box\nbox,mary\n").universe
    assert dict(universe.table("likes")) == {"john": "john", "mary": "box", "box": "mary"}


THINGS = {"a b": "thing"}, {"a": "kind:a"}, {"-": "thing"}, {"a": "thing", "#b": "thing"}
ODD_RELATIONS = [
    Relation("a b", of=frozenset({"thing"})),
    Relation("concept", of=frozenset({"thing"})),
    Relation("of_nothing", of=frozenset()),
    Relation("odd", of=frozenset({"thing"}), values=frozenset({"x|y"})),
    Relation("containedby", of=frozenset({"thing"}), to=frozenset({"thing"})),  # which may go round
]


@pytest.mark.parametrize(
    "universe", [*(Universe(names, []) for names in THINGS), *(Universe({"a": "thing"}, [r]) for r in ODD_RELATIONS)]
)
def test_what_could_not_be_read_again_is_not_written(universe, tmp_path):
    with pytest.raises(ValueError, match="universe has"):
        write_table(tmp_path / "table.csv", universe)
    assert list(tmp_path.iterdir()) == []


def test_words_of_a_table_must_be_words_of_its_concepts(tmp_path):
    universe = Universe({"box": "thing"}, [])
    with pytest.raises(ValueError, match="words has 'the box'; a word has no blanks"):
        write_table(tmp_path / "table.csv", universe, {"the box": ["box"]})
    with pytest.raises(ValueError, match=r"words\['it'\] has 'bag', which is no concept"):
        write_table(tmp_path / "table.csv", universe, {"it": ["bag"]})
    with pytest.raises(TypeError, match=r"words\['it'\] is of type str; it must be a list of concepts"):
        write_table(tmp_path / "table.csv", universe, {"it": "box"})


# ---- Events in a universe from a table ----


def test_a_house_from_a_table_lives_as_the_house_itself(tmp_path):
    house = new_universe(Random(0))
    write_table(tmp_path / "house.csv", house)
    universe, randoms = read_table(tmp_path / "house.csv").universe, (Random(1), Random(1))
    for _ in range(50):
        here, there = event(universe, randoms[0]), event(house, randoms[1])
        assert (here.frame, here.arguments) == (there.frame, there.arguments)
        assert is_coherent(universe, here)
        execute(universe, here)
        execute(house, there)
        assert universe == house


MOVE = next(frame for frame in FRAMES if frame.verb == "move")


@pytest.mark.parametrize("arguments", [("ghost", "hall", "kitchen"), ("john", "hall", "moon"), ("john",), ("box",) * 3])
def test_an_event_that_cannot_happen_changes_nothing(arguments, tmp_path):
    write_table(tmp_path / "house.csv", new_universe(Random(0)))
    universe = read_table(tmp_path / "house.csv").universe
    before = universe.copy()
    with pytest.raises(UniverseError, match=r"event is move\(.*cannot happen now"):
        execute(universe, Event(MOVE, arguments))
    assert universe == before


def test_an_event_needs_the_relations_it_is_about(tmp_path):
    write_table(tmp_path / "house.csv", new_universe(Random(0)), relations=["location"])
    universe = read_table(tmp_path / "house.csv").universe
    before = universe.copy()
    with pytest.raises(UniverseError, match="relation is 'containedby'; this universe has location"):
        execute(universe, Event(MOVE, ("john", "hall", "kitchen")))
    assert universe == before


def test_what_a_universe_cannot_hold_does_not_happen_in_it(table_of):
    """Here nothing may be where john goes, though the rules of the house would let him."""
    at = "location(actor):room:acyclic"
    kinds = "".join(f"{name},{kind},,\n" for name, kind in CONCEPTS.items() if name not in ("john", "ball"))
    head = f"concept,kind,{at},containedby,state=asleep\njohn,actor,hall,\nball,object,,john\n"
    universe = table_of(head + kinds).universe
    before = universe.copy()
    with pytest.raises(UniverseError, match="location is not of 'ball', of kind object"):
        execute(universe, Event(MOVE, ("john", "hall", "kitchen")))
    assert universe == before
