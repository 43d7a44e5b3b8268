"""A universe holds what is possible, and a table holds a universe as it is; what is wrong is said with the place."""

import gzip
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank.ambiguous import verbs
from larank.ambiguous.universe import Fact, Relation, Universe, UniverseError
from larank.ambiguous.universetable import read_table, write_table
from larank.ambiguous.verbs import FRAMES, Event, event, execute, is_coherent, new_universe
from larank.data import DataFormatError

CONCEPTS = {"john": "actor", "kitchen": "room", "hall": "room", "box": "thing", "bag": "thing", "ball": "thing"}
RELATIONS = [
    Relation("location", of=frozenset({"actor", "thing"}), to=frozenset({"room", "thing"}), acyclic=True),
    Relation("containedby", of=frozenset({"thing"}), to=frozenset({"thing", "actor"}), acyclic=True),
    Relation("state", of=frozenset({"actor"}), values=frozenset({"awake", "asleep"})),
    Relation("likes", of=frozenset({"actor", "thing"}), to=frozenset({"actor", "thing"})),
]


@pytest.fixture
def universe():
    made = Universe(CONCEPTS, RELATIONS)
    made.update([("location", "john", "kitchen"), ("containedby", "ball", "box"), ("containedby", "box", "bag")])
    return made


def test_facts_are_there_in_one_order_until_they_are_replaced_or_removed(universe):
    other = Universe(CONCEPTS, RELATIONS)
    other.update(reversed(universe.facts()))
    assert other == universe
    told = [("location", "john", "kitchen"), ("containedby", "box", "bag"), ("containedby", "ball", "box")]
    assert universe.facts() == other.facts() == [Fact(*fact) for fact in told]
    assert universe.get("location", "john") == "kitchen"
    universe.set("location", "john", "hall")
    assert universe.get("location", "john") == "hall"
    for _ in range(2):
        universe.remove("location", "john")
        assert universe.get("location", "john") is None


def test_a_copy_changes_on_its_own_and_a_table_follows_its_universe(universe):
    twin, table = universe.copy(), universe.table("containedby")
    assert twin == universe
    twin.update([("state", "john", "asleep"), ("containedby", "ball", None)])
    assert universe.get("state", "john") is None
    assert twin != universe
    assert dict(table) == {"box": "bag", "ball": "box"}
    assert repr(twin) == f"Universe({len(twin.concepts)} concepts, 3 facts)" != twin
    universe.remove("containedby", "ball")
    assert dict(table) == {"box": "bag"}
    with pytest.raises(TypeError):
        table["ball"] = "box"


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (("location", "kitchen", "hall"), "location is not of 'kitchen', of kind room; it is of actor, thing"),
        (("location", "john", "john"), r"location\(john\) cannot be 'john', .* of kind actor; it may be any room"),
        (("location", "john", "moon"), "cannot be 'moon', which is not known"),
        (("location", "mary", "hall"), "concept is 'mary', which is not known; known are bag, box, hall, john, kit"),
        (("owner", "john", "hall"), "relation is 'owner'; this universe has containedby, likes, location, state"),
        (("state", "john", "hungry"), "cannot be 'hungry', which is not known; it may be 'asleep', 'awake'"),
        (("containedby", "bag", "ball"), r"containedby\(bag\) = ball leads from 'bag' back to itself"),
        (("containedby", "bag", "bag"), "back to itself"),
        (("location", "bag", "ball"), r"location\(bag\) = ball leads from 'bag' back to itself"),
    ],
)
def test_a_bad_fact_is_refused_and_nothing_changes(universe, fact, words):
    before = universe.copy()
    for change in (
        lambda: universe.set(*fact),
        lambda: universe.update([("location", "john", "hall"), fact, ("likes", "john", "ball")]),
    ):
        with pytest.raises(UniverseError, match=words):
            change()
        assert universe == before


def test_unknown_names_cannot_be_asked_for_or_removed(universe):
    for ask in (universe.get, universe.remove):
        with pytest.raises(UniverseError, match="concept is 'mary'"):
            ask("location", "mary")
        with pytest.raises(UniverseError, match="relation is 'owner'"):
            ask("owner", "john")


def test_relations_that_are_not_acyclic_may_lead_back_and_only_the_outcome_of_an_update_counts(universe):
    universe.update([("likes", "john", "ball"), ("likes", "ball", "john")])
    assert universe.get("likes", "ball") == "john"
    universe.update([("containedby", "bag", "ball"), ("containedby", "box", None)])
    assert dict(universe.table("containedby")) == {"ball": "box", "bag": "ball"}


facts = st.tuples(
    st.sampled_from([relation.name for relation in RELATIONS]),
    st.sampled_from(list(CONCEPTS)),
    st.one_of(st.none(), st.sampled_from([*CONCEPTS, "awake"])),
)


@given(st.lists(st.lists(facts, max_size=4), max_size=12))
def test_no_story_leads_to_a_cycle_or_a_wrong_kind(story):
    universe = Universe(CONCEPTS, RELATIONS)
    for update in story:
        before = universe.copy()
        try:
            universe.update(update)
        except UniverseError:
            assert universe == before
    rules = {relation.name: relation for relation in RELATIONS}
    edges = {}
    for relation, concept, value in universe.facts():
        assert CONCEPTS[concept] in rules[relation].of
        assert value in rules[relation].values or CONCEPTS[value] in rules[relation].to
        if rules[relation].acyclic:
            edges.setdefault(concept, set()).add(value)
    for _ in CONCEPTS:  # what leads nowhere cannot be in a cycle
        edges = {concept: {to for to in tos if to in edges} for concept, tos in edges.items() if tos & edges.keys()}
    assert not edges


def test_the_work_of_an_update_does_not_grow_with_the_universe():
    def calls(size):
        made = Universe({**CONCEPTS, **{f"box{n}": "thing" for n in range(size)}}, RELATIONS)
        made.update([("containedby", f"box{n}", "bag") for n in range(size)])
        events = []
        sys.setprofile(lambda frame, event, argument: events.append(event))
        try:
            made.update([("location", "john", "hall"), ("containedby", "ball", "box")])
        finally:
            sys.setprofile(None)
        return len(events)

    assert calls(1000) == calls(1)


HOME = Relation("home", of=frozenset({"actor"}), to=frozenset({"planet"}))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Relation("at", of="ship"), "of must be a set of str"),
        (lambda: Relation("at", of={"ship"}, to="quay"), "to must be a set of str"),
        (lambda: Relation("at", of=3), "of must be a set of str"),
        (lambda: Relation("", of={"ship"}), "name must be a str"),
        (lambda: Universe(["anna"], []), "concepts must be a dict"),
        (lambda: Universe({"anna": None}, []), "'anna' of the kind None"),
        (lambda: Universe({"": "crew"}, []), "the concept ''"),
        (lambda: Universe({"anna": "crew"}, ["at"]), "relations has 'at'"),
        (lambda: Universe({"anna": "crew"}, Relation("at", of={"crew"})), "relations must be a list"),
        (lambda: Universe(CONCEPTS, [*RELATIONS, RELATIONS[2]]), "relations has 'state' twice"),
        (
            lambda: Universe(CONCEPTS, [HOME]),
            "'home' speaks of the kind 'planet'; concepts are of the kinds actor",
        ),
        (lambda: Universe({"anna": "crew"}, []).update([("at", "anna")]), "a fact is a tuple"),
        (lambda: Universe({"anna": "crew"}, []).update({"at": {}}), "a fact is a tuple"),
    ],
)
def test_what_a_universe_is_made_of_is_checked(make, complaint):
    with pytest.raises(UniverseError, match=complaint):
        make()


def test_any_collection_of_kinds_will_do():
    relation = Relation("at", of=["ship"], to={"quay"}, values=("sea",))
    assert relation == Relation("at", of=frozenset({"ship"}), to=frozenset({"quay"}), values=frozenset({"sea"}))
    assert str(Fact("at", "beluga", "northquay")) == "at(beluga) = northquay"
    assert str(Fact("at", "beluga", None)) == "at(beluga) ="


# ---- Tables ----

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
    kinds = {"john": "actor", "mary": "actor", "kitchen": "room", "hall": "room"}
    assert dict(table.universe.concepts) == kinds | {"box": "thing"}  # thing: none is given
    assert {name: dict(table.universe.table(name)) for name in table.universe.relations} == {
        "location": {"john": "kitchen", "mary": "hall"},
        "likes": {"john": "mary", "mary": "john"},
        "state": {"john": "awake"},
    }
    meant = {"he": ("john",), "she": ("mary",), "there": ("kitchen", "hall")}
    assert table.words == meant | {name: (name,) for name in kinds}


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
    likes = table_of("concept,likes\njohn,john\nmary,box\nbox,mary\n").universe.table("likes")  # which may go round
    assert dict(likes) == {"john": "john", "mary": "box", "box": "mary"}


@pytest.mark.parametrize("name", ["house.csv", "house.tsv", "house.csv.gz"])
def test_a_universe_that_is_written_and_read_is_the_same(name, tmp_path):
    house, words = new_universe(Random(0)), {"father": ("john",), "he": ("john", "mark")}
    write_table(tmp_path / name, house, words)
    table = read_table(tmp_path / name)
    assert (table.universe, table.words) == (house, words)
    write_table(tmp_path / name, house, relations=["location"])
    universe = read_table(tmp_path / name).universe
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
        ('concept\n"a\n', "line 2: unexpected end of data"),
        ("concept,containedby\nbox,box\n", r"line 2, column 'containedby': containedby\(box\) = box leads"),
        ("concept,containedby\nbox,bag\nbag,ball\nball,box\n", r"line 4, .*: containedby\(ball\) = box leads"),
        ("concept,containedby\nbox,box\nbag,\nball,bag\nhat,bag\n", r"line 2, .*: containedby\(box\) = box leads"),
        ("concept,in:acyclic,on:acyclic\nbox,bag,\nbag,,box\n", "line 3, column 'on:acyclic': .* back to itself"),
    ],
)
def test_what_is_no_table_is_refused_with_the_place(table_of, text, message):
    with pytest.raises(DataFormatError, match=rf"table\.csv, {message}"):
        table_of(text)


BOX, THING = Universe({"box": "thing"}, []), frozenset({"thing"})
THINGS = {"a b": "thing"}, {"a": "kind:a"}, {"-": "thing"}, {"a": "thing", "#b": "thing"}
ODD_RELATIONS = [
    Relation("a b", of=THING),
    Relation("concept", of=THING),
    Relation("of_nothing", of=frozenset()),
    Relation("odd", of=THING, values=frozenset({"x|y"})),
    Relation("containedby", of=THING, to=THING),  # which may go round
]


@pytest.mark.parametrize(
    ("universe", "words", "error", "message"),
    [
        *((Universe(names, []), None, ValueError, "universe has") for names in THINGS),
        *((Universe({"a": "thing"}, [relation]), None, ValueError, "universe has") for relation in ODD_RELATIONS),
        (BOX, {"the box": ["box"]}, ValueError, "words has 'the box'; a word has no blanks"),
        (BOX, {"it": ["bag"]}, ValueError, r"words\['it'\] has 'bag', which is no concept"),
        (BOX, {"it": "box"}, TypeError, r"words\['it'\] is of type str; it must be a list of concepts"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(universe, words, error, message, tmp_path):
    with pytest.raises(error, match=message):
        write_table(tmp_path / "table.csv", universe, words)
    assert list(tmp_path.iterdir()) == []


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
BARE = "concept,kind,location:room:acyclic\njohn,actor,hall\n"
# Nothing may be where john goes, though the rules of the house would let him take the ball along.
NO_PLACE = "concept,kind,location(actor):room:acyclic,containedby,state=asleep\njohn,actor,hall,\nball,object,,john\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BARE, "relation is 'containedby'; this universe has"),
        (NO_PLACE, "location is not of 'ball', of kind object"),
    ],
)
def test_what_a_universe_cannot_hold_does_not_happen_in_it(text, message, table_of):
    kinds = "".join(f"{name},{kind}\n" for name, kind in verbs.CONCEPTS.items() if name not in ("john", "ball"))
    universe = table_of(text + kinds).universe
    before = universe.copy()
    with pytest.raises(UniverseError, match=message):
        execute(universe, Event(MOVE, ("john", "hall", "kitchen")))
    assert universe == before
