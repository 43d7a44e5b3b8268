"""A universe holds what is possible, and a bad change leaves it as it was."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank.ambiguous.universe import Fact, Relation, Universe, UniverseError

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


def test_a_fact_is_there_until_it_is_replaced_or_removed(universe):
    assert universe.get("location", "john") == "kitchen"
    universe.set("location", "john", "hall")
    assert universe.get("location", "john") == "hall"
    universe.remove("location", "john")
    universe.remove("location", "john")
    assert universe.get("location", "john") is None


def test_facts_are_listed_in_one_order_however_they_came(universe):
    other = Universe(CONCEPTS, RELATIONS)
    other.update(reversed(universe.facts()))
    assert other == universe
    assert other.facts() == universe.facts()
    assert universe.facts() == [
        Fact("location", "john", "kitchen"),
        Fact("containedby", "box", "bag"),
        Fact("containedby", "ball", "box"),
    ]


def test_a_copy_changes_on_its_own(universe):
    twin = universe.copy()
    assert twin == universe
    twin.set("state", "john", "asleep")
    assert universe.get("state", "john") is None
    assert twin != universe
    assert repr(twin) == f"Universe({len(twin.concepts)} concepts, 4 facts)" != twin
    with pytest.raises(UniverseError, match="back to itself"):
        twin.set("containedby", "bag", "ball")


def test_a_table_follows_changes_and_cannot_be_written(universe):
    table = universe.table("containedby")
    universe.remove("containedby", "ball")
    assert dict(table) == {"box": "bag"}
    with pytest.raises(TypeError):
        table["ball"] = "box"


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (("location", "kitchen", "hall"), "location is not of 'kitchen', of kind room; it is of actor, thing"),
        (
            ("location", "john", "john"),
            r"location\(john\) cannot be 'john', which is of kind actor; it may be any room",
        ),
        (("location", "john", "moon"), "cannot be 'moon', which is not known"),
        (
            ("location", "mary", "hall"),
            "concept is 'mary', which is not known; known are bag, box, hall, john, kitchen",
        ),
        (("owner", "john", "hall"), "relation is 'owner'; this universe has containedby, likes, location, state"),
        (("state", "john", "hungry"), "cannot be 'hungry', which is not known; it may be 'asleep', 'awake'"),
        (("containedby", "bag", "ball"), r"containedby\(bag\) = ball leads from 'bag' back to itself"),
        (("containedby", "bag", "bag"), "back to itself"),
        (("location", "bag", "ball"), r"location\(bag\) = ball leads from 'bag' back to itself"),
    ],
)
def test_a_bad_fact_is_refused_and_nothing_changes(universe, fact, words):
    before = universe.copy()
    with pytest.raises(UniverseError, match=words):
        universe.update([("location", "john", "hall"), ("state", "john", "awake"), fact, ("likes", "john", "ball")])
    assert universe == before
    with pytest.raises(UniverseError, match=words):
        universe.set(*fact)
    assert universe == before


def test_unknown_names_cannot_be_asked_for_or_removed(universe):
    for ask in (universe.get, universe.remove):
        with pytest.raises(UniverseError, match="concept is 'mary'"):
            ask("location", "mary")
        with pytest.raises(UniverseError, match="relation is 'owner'"):
            ask("owner", "john")


def test_relations_that_are_not_acyclic_may_lead_back(universe):
    universe.update([("likes", "john", "ball"), ("likes", "ball", "john")])
    assert universe.get("likes", "ball") == "john"


def test_only_the_outcome_of_an_update_counts(universe):
    universe.update([("containedby", "bag", "ball"), ("containedby", "box", None)])
    assert dict(universe.table("containedby")) == {"ball": "box", "bag": "ball"}


def test_relations_must_fit_the_concepts():
    with pytest.raises(UniverseError, match="relations has 'state' twice"):
        Universe(CONCEPTS, [*RELATIONS, RELATIONS[2]])
    with pytest.raises(
        UniverseError, match="'home' speaks of the kind 'planet'; concepts are of the kinds actor, room"
    ):
        Universe(CONCEPTS, [Relation("home", of=frozenset({"actor"}), to=frozenset({"planet"}))])


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
