"""ConceptLabeler: what it learns with and without knowledge, streams, universes, explanations and bad input."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV

import larank
from larank import ConceptLabeler
from larank.ambiguous.house import House, make_triples
from larank.ambiguous.universe import Relation, Universe, UniverseError
from larank.ambiguous.universes import Universes

LOCATION = Relation("location", of=frozenset({"actor", "thing"}), to=frozenset({"room"}), acyclic=True)
MOOD = Relation("mood", of=frozenset({"actor"}), values=frozenset({"happy", "sad"}))
CONCEPTS = {"john": "actor", "mark": "actor", "rice": "thing", "kitchen": "room", "hall": "room", "cook": "verb"}
MOODS = Universe({"john": "actor"}, [MOOD])
SMALL = {"hidden_size": 32, "embedding_size": 8, "random_state": 0}


@pytest.fixture(scope="module")
def triples():
    return make_triples(2000, random_state=1), make_triples(400, random_state=2)


@pytest.fixture(scope="module")
def labeler(triples):
    train, _ = triples
    return ConceptLabeler(random_state=0).fit(train.words, train.concepts, train.universes)


@pytest.fixture(scope="module")
def blind(triples):
    train, _ = triples
    return ConceptLabeler((), random_state=0).fit(train.words, train.concepts, train.universes)


def house_of(john="kitchen", mark="hall", rice="kitchen", relations=(LOCATION,)):
    universe = Universe(CONCEPTS, relations)
    universe.update([("location", "john", john), ("location", "mark", mark), ("location", "rice", rice)])
    return universe


def who_is_he(n=200, seed=0):
    """Sentences where "he" is who is where the rice is."""
    random = np.random.default_rng(seed)
    universes, concepts = [], []
    for is_john in random.random(n) < 0.5:
        room, other = random.permutation(["kitchen", "hall"]).tolist()
        universes.append(house_of(*((room, other) if is_john else (other, room)), room))
        concepts.append(["john" if is_john else "mark", "cook", "-", "rice"])
    return ["he cooks the rice"] * n, concepts, universes


# What is learned


def error(labeler, triples):
    return 1 - labeler.score(triples.words, triples.concepts, triples.universes)


def trained(data, relations=None, **parameters):
    return ConceptLabeler(relations, **{**SMALL, **parameters}).fit(*data)


@pytest.fixture(scope="module")
def he():
    """A labeler of who_is_he that tests question and do not train."""
    return trained(who_is_he())


every_strategy = pytest.mark.parametrize("strategy", ["order-free", "left-right", "independent"])


def test_knowledge_resolves_what_words_alone_cannot(triples, labeler, blind):
    train, test = triples
    assert error(labeler, test) < 0.1
    assert error(labeler, train) < 0.01
    assert error(blind, test) > 0.3
    alone = ConceptLabeler((), strategy="independent", random_state=0).fit(train.words, train.concepts)
    assert 0.3 < error(alone, test) < 0.5


def test_without_relations_the_universe_does_not_count(triples):
    train, test = triples
    blind = ConceptLabeler((), max_iter=2, **SMALL).fit(train.words, train.concepts, train.universes)
    without = ConceptLabeler((), max_iter=2, **SMALL).fit(train.words, train.concepts)
    np.testing.assert_array_equal(blind.concept_vectors_, without.concept_vectors_)
    mixed = Universes(test.names, len(test.names), {"location": test.location[::-1]})
    expected = blind.predict(test.words)
    assert blind.predict(test.words, test.universes) == without.predict(test.words, mixed) == expected


def test_he_is_who_is_where_the_rice_is(he):
    assert he.score(*who_is_he(50, seed=1)) == 1
    for strategy in ("left-right", "independent"):
        assert trained(who_is_he(), strategy=strategy).score(*who_is_he(50, seed=1)) < 0.9


@every_strategy
@pytest.mark.parametrize("supervision", ["aligned", "bags"])
def test_no_learning_rate_lets_training_diverge(triples, strategy, supervision):
    train, _ = triples
    labeler = ConceptLabeler(strategy=strategy, supervision=supervision, learning_rate=10.0, max_iter=2, random_state=0)
    labeler.fit(train.words[:600], train.concepts[:600], train.universes[:600])
    assert max(np.abs(array).max() for array in labeler._learner.weights) < 10


def test_concepts_used_alike_are_close(blind):
    names = blind.concepts_.tolist()
    vectors = blind.concept_vectors_
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    rooms = ["kitchen", "livingroom", "bedroom", "bathroom", "hall", "garden"]
    nearest = [names[distances[names.index(room)].argmin()] for room in rooms]
    assert sum(name in rooms for name in nearest) >= 4


# Bags


def shuffled(triples, seed=0):
    """Bags without the empty concept, in any order."""
    random = np.random.default_rng(seed)
    return [random.permutation([name for name in names if name != "-"]).tolist() for names in triples.concepts]


def test_bags_say_enough_at_once_and_in_a_stream(triples):
    train, test = triples
    bags = shuffled(train)
    labeler = ConceptLabeler(supervision="bags", random_state=0).fit(train.words, bags, train.universes)
    assert error(labeler, test) < 0.1
    assert labeler.result_.operations["mistakes"] > 0
    stream = ConceptLabeler(supervision="bags", random_state=0)
    for _ in range(4):
        stream.partial_fit(train.words, bags, train.universes)
    assert error(stream, test) < 0.2


def test_the_order_in_a_bag_does_not_count(triples):
    train, _ = triples
    one, other = (
        trained((train.words[:200], shuffled(train, seed)[:200]), (), supervision="bags", max_iter=2) for seed in (0, 1)
    )
    np.testing.assert_array_equal(one.concept_vectors_, other.concept_vectors_)


def test_bags_may_be_empty_and_any_collection():
    labeler = ConceptLabeler(supervision="bags", max_iter=200, **SMALL)
    assert labeler.fit(["the rice", "so what"], [["rice"], []]).predict(["so what"]) == [["-", "-"]]
    for words, bag in ((["the", "rice"], (name for name in ["rice"])), ("the rice", {"rice"})):
        assert labeler.fit([words], [bag]).concepts_.tolist() == ["-", "rice"]


@every_strategy
def test_long_bags_are_learned_from(strategy):
    words = [f"w{k}" for k in range(30)]
    random = np.random.default_rng(0)
    sentences = [random.choice(words, 12, replace=False).tolist() for _ in range(400)]
    bags = [[word.upper() for word in sentence] for sentence in sentences]
    labeler = ConceptLabeler((), supervision="bags", strategy=strategy, window=3, **SMALL)
    labeler.partial_fit(sentences[:1], bags[:1])
    assert labeler.result_.operations["updates"] == 1
    labeler.fit(sentences, [random.permutation(bag).tolist() for bag in bags])
    assert labeler.score(sentences, bags) > 0.9


def test_words_that_are_rare_enter_the_lexicon(monkeypatch):
    monkeypatch.setattr("larank.ambiguous.conceptschedule._LEXICON_LOOKS", 100)
    words = [f"w{k}" for k in range(300)]  # each comes once
    learner = (
        ConceptLabeler((), supervision="bags", max_iter=1, **SMALL).fit(words, [[word] for word in words])._learner
    )
    scores = learner.lexicon.scores[[learner.words[word] for word in words], [learner.symbols[word] for word in words]]
    assert (scores > 0).sum() == 299  # the first one had no other to be told apart from


def test_the_time_limit_also_holds_for_the_lexicon(monkeypatch):
    monkeypatch.setattr("larank.ambiguous.passes._STEP_SECONDS", 0.0)  # a look at the limit after every block
    sentences = [[f"w{k}" for k in range(20)]] * 200
    labeler = ConceptLabeler((), supervision="bags", time_limit=1e-9, max_iter=1, **SMALL)
    with pytest.warns(larank.TrainingWarning, match="time_limit"):
        labeler.fit(sentences, [["a", "b"]] * 200)
    assert labeler.result_.iterations == 0, "training ended before the network had learnt from any sentence"


# Streams


def test_a_stream_brings_new_words_and_concepts():
    labeler = trained(who_is_he())
    grown = Universe({**CONCEPTS, "gina": "actor"}, [LOCATION])
    grown.set("location", "gina", "hall")
    labeler.partial_fit(["she cooks", "gina cooks"] * 20, [["gina", "cook"]] * 40, grown)
    assert labeler.predict(["gina cooks"], grown) == [["gina", "cook"]]
    assert "gina" in labeler.concepts_
    assert "she" in labeler.words_
    assert labeler.score(*who_is_he(50, seed=1)) > 0.9
    assert "gina" not in labeler.predict(["gina cooks the rice"], house_of())[0]  # she is not there


def test_a_saved_model_goes_on_as_the_original(tmp_path):
    sentences, concepts, universes = who_is_he()
    labeler = trained((sentences, concepts, universes))
    larank.save(labeler, tmp_path / "house.larank")
    loaded = larank.load(tmp_path / "house.larank")
    assert loaded.relations_ == labeler.relations_
    for model in (labeler, loaded):
        model.partial_fit(sentences[:20], concepts[:20], universes[:20])
    np.testing.assert_array_equal(labeler.concept_vectors_, loaded.concept_vectors_)
    assert str(labeler.explain(sentences[0], universes[0])) == str(loaded.explain(sentences[0], universes[0]))


# Universes


def test_one_universe_many_tables_and_what_cross_validation_makes_of_them_are_the_same(he, triples):
    sentences, _, universes = who_is_he()
    assert he.predict(sentences, universes) == he.predict(sentences, Universes.of(universes))
    assert he.predict(sentences[:3], house_of()) == he.predict(sentences[:3], [house_of()] * 3)
    train, _ = triples
    rows = [3, 5, 8]
    words, concepts = [train.words[row] for row in rows], [train.concepts[row] for row in rows]
    one, other = (
        trained((words, concepts, universes), max_iter=2)
        for universes in (train.universes[rows], [train.universes[row] for row in rows])
    )
    np.testing.assert_array_equal(one.concept_vectors_, other.concept_vectors_)
    assert len(train.universes[10:14]) == 4


def test_values_that_are_no_concepts_count_too_and_are_known_before_they_occur():
    moods = np.random.default_rng(0).choice(["happy", "sad"], 100)
    universes = [house_of(relations=(LOCATION, MOOD)) for _ in moods]
    for universe, mood in zip(universes, moods, strict=True):
        universe.update([("mood", "john", mood), ("mood", "mark", "sad" if mood == "happy" else "happy")])
    data = ["he laughs"] * 100, [["john" if mood == "happy" else "mark", "-"] for mood in moods], universes
    labeler = trained(data)
    assert labeler.relations_ == ("location", "mood")
    assert labeler.score(*data) == 1
    assert "happy" not in labeler.concepts_
    universe = house_of(relations=(LOCATION, MOOD))
    universe.set("mood", "john", "happy")
    labeler = trained((["he laughs"], [["john", "-"]], universe))
    universe.set("mood", "john", "sad")
    assert len(labeler.predict(["he laughs"], universe)[0]) == 2


def test_the_house_can_be_told_by_its_own_universes():
    house = House(random_state=0, ambiguity=0.5)
    episodes = [house.step() for _ in range(200)]
    given = zip(*((e.words, e.concepts, e.universe) for e in episodes), strict=True)
    labeler = trained(map(list, given), max_iter=2)
    assert labeler.relations_ == ("location", "containedby", "inherit", "state")
    assert len(labeler.concepts_) == 59


def test_grids_are_searched_with_universes(triples):
    train, _ = triples
    n = 120
    universes = train.universes[:n]
    with sklearn.config_context(enable_metadata_routing=True):
        labeler = ConceptLabeler(max_iter=1, **SMALL).set_fit_request(universes=True).set_score_request(universes=True)
        search = GridSearchCV(labeler, {"window": [1, 3]}, cv=2)
        search.fit(train.words[:n], train.concepts[:n], universes=universes)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# Explanations


@pytest.mark.parametrize("supervision", ["aligned", "bags"])
def test_an_explanation_has_the_labels_in_their_order_and_what_decided_them(supervision):
    labeler, there = trained(who_is_he(), supervision=supervision), house_of("hall", "kitchen", "kitchen")
    last = labeler.explain("he cooks the rice", there).steps[-1]
    assert {last.concept, last.runner_up} == {"john", "mark"}, "a word is compared with what it has meant before"
    explanation = labeler.explain("he cooks the rice", there, against="john")
    assert list(explanation.concepts) == labeler.predict(["he cooks the rice"], there)[0]
    last = explanation.steps[-1]
    assert (last.concept, last.runner_up) == ("mark", "john")
    assert last.word == "he" or supervision == "bags"
    assert ("location", "mark", "kitchen") in last.facts
    assert str(explanation).count("\n") > 3
    assert "location(mark) = kitchen" in str(explanation)


@every_strategy
@pytest.mark.parametrize("relations", [None, ()])
def test_reasons_add_up_to_the_margin(strategy, relations):
    labeler = trained(who_is_he(), relations, strategy=strategy)
    for words in ("he cooks the rice", "he", "never seen before", "the rice cooks the rice he"):
        for step in labeler.explain(words, house_of()).steps:
            assert sum(reason.amount for reason in step.reasons) == pytest.approx(step.margin, abs=1e-3)


def test_what_lies_beyond_the_ends_is_one_reason_for_each_part():
    labeler = trained((["he", "she"], [["john"], ["mark"]], house_of()))
    sources = [reason.source for reason in labeler.explain("he", house_of()).steps[0].reasons]
    assert sources.count("ends") == 2  # by name and by location
    assert sources.count("bias") == 1


def test_words_that_are_new_or_come_twice_are_told_apart(labeler):
    text = str(labeler.explain("the xylophone sees the cat", House(0).universe))
    assert text.count("never seen") == 2
    assert "'the' (1)" in text or "'the' (4)" in text


def test_a_single_concept_has_no_runner_up():
    explanation = trained((["a b"], [["-", "-"]])).explain("a b")
    assert [step.runner_up for step in explanation.steps] == [None, None]
    assert "before" not in str(explanation)


# Bad input

HE = (["he"], [["john"]])
FITS = [
    ({}, ("he cooks", [["john"]]), "sentences is of type str"),
    ({}, (["he cooks"], [["john"]]), r"concepts\[0\] has 1 concepts, sentences\[0\] 2 words"),
    ({}, (["he"], [["john"]] * 2), "sentences and concepts must be equally long, got 1 and 2"),
    ({}, (["he"], [[3]]), r"concepts\[0\]\[0\] is 3, of type int"),
    ({}, ([""], [[]]), r"sentences\[0\] is empty"),
    ({}, ([], []), "sentences is empty"),
    ({}, (*HE, "kitchen"), "universes is of type str"),
    ({}, (*HE, [3]), r"universes\[0\] is of type int"),
    ({}, (["he"], [["gina"]], house_of()), r"concepts\[0\]\[0\] is 'gina', which is no concept"),
    ({}, (*HE, [house_of()] * 3), "sentences and universes must be equally long, got 1 and 3"),
    ({}, (["he"] * 2, [["john"]] * 2, [house_of(), MOODS]), r"universes\[1\] has .*relations mood"),
    ({"relations": "location"}, (*HE, house_of()), "relations must be None or a list of names"),
    ({"relations": ["place"]}, (*HE, house_of()), "relations has 'place'; universes has location"),
    ({"relations": ["location", "location"]}, (*HE, house_of()), "twice"),
    ({"relations": [3]}, (*HE, house_of()), "relations must have names"),
    ({"relations": ["location"]}, HE, "no universes"),
    (
        {"supervision": "bags"},
        (["the rice"], [["rice"] * 3]),
        r"concepts\[0\] has 3 concepts, sentences\[0\] 2 words; .*at most as many",
    ),
]


ATTIC = Universe({**CONCEPTS, "attic": "room"}, [LOCATION])
HAPPY = Universe({**CONCEPTS, "happy": "actor"}, [LOCATION, MOOD])
FIXED = {"strategy": "left-right", "supervision": "bags", "relations": ()}
FIXED |= dict.fromkeys(("embedding_size", "hidden_size", "window"), 5)
BLIND = "cannot count, for the labeler was trained without"
CALLS = [
    (lambda fitted: fitted.predict(["he"]), "universes is None; the labeler was trained with location"),
    (lambda fitted: fitted.predict(["he"], MOODS), "universes has the relations mood"),
    (lambda fitted: fitted.predict(["he"], ATTIC), "'attic', which was not there in training"),
    (lambda fitted: fitted.score(["he"], [["jon"]], house_of()), r"concepts\[0\]\[0\] is 'jon', which is no concept"),
    (lambda fitted: fitted.explain("he", [house_of()] * 2), "universe is of type list"),
    (lambda fitted: fitted.explain("he"), "universe is None"),
    (lambda fitted: fitted.explain("he", house_of(), against="attic"), "against is 'attic'"),
    (lambda fitted: fitted.partial_fit(["she cooks"], [["gina", "cook"]], house_of()), "no concept of the universe"),
    *(
        (
            lambda fitted, n=n: fitted.set_params(**{n: FIXED[n]}).partial_fit(*HE, house_of()),
            f"{n} must stay as .*{was}",
        )
        for n, was in {**dict.fromkeys(FIXED, ""), "relations": r"\('location',\)"}.items()
    ),
    (lambda fitted: trained(HE).partial_fit(*HE, house_of()), "universes must be None as in the first call"),
    (lambda fitted: ConceptLabeler(**SMALL).partial_fit([], []), "the first call needs at least one sentence"),
    (
        lambda fitted: trained((*HE, house_of(relations=(LOCATION, MOOD)))).predict(["he"], HAPPY),
        "'happy', which was not there in training",
    ),
    (lambda fitted: trained(HE).predict(["he"], house_of()), BLIND),
    (lambda fitted: trained(HE).score(*HE, house_of()), BLIND),
    (lambda fitted: trained(HE).explain("he", house_of()), BLIND),
]
TABLE = {"names": ("a", "b"), "n_concepts": 2, "tables": {"r": np.zeros((2, 2), int)}}
TABLES = [
    ({"names": ("a", "a")}, "twice"),
    ({"n_concepts": 5}, "n_concepts is 5"),
    ({"tables": {"r": np.zeros((2, 3), int)}}, "2 columns"),
    ({"tables": {"r": np.zeros((2, 2))}}, "an array of integers"),
    ({"tables": {"r": [[0, 0]]}}, "an array of integers, got list"),
    *(({"names": ("a", name)}, f"names has {name!r}") for name in ("-", "", 3)),
    ({"tables": {"r": np.zeros((1, 2), int), "s": np.full((1, 2), -2)}}, "the table of s has -2"),
    *(({"tables": {"r": np.full((2, 2), value)}}, "leads beyond the names") for value in (2, -3)),
]
BAD, OTHER_NAMES = (TypeError, ValueError), r"universes\[1\] has other names"
REFUSED = [
    *((lambda _, parameters=p, given=given: trained(given, **parameters), BAD, told) for p, given, told in FITS),
    *((call, BAD, told) for call, told in CALLS),
    *((lambda _, change=change: Universes(**{**TABLE, **change}), UniverseError, told) for change, told in TABLES),
    (lambda _: Universes.join([Universes.of([MOODS]), Universes.of([house_of()])]), UniverseError, OTHER_NAMES),
]


@pytest.mark.parametrize(("call", "error", "complaint"), REFUSED, ids=[complaint for *_, complaint in REFUSED])
def test_what_is_wrong_is_named_and_changes_nothing(call, error, complaint):
    fitted = trained((*HE, house_of()), ["location"])
    before = fitted.concept_vectors_.copy()
    with pytest.raises(error, match=complaint):
        call(fitted)
    np.testing.assert_array_equal(fitted.concept_vectors_, before)
    assert list(fitted.words_) == ["he"]


def test_no_sentences_have_no_concepts():
    labeler = trained((*HE, house_of()))
    assert labeler.predict([]) == labeler.predict([], []) == []
    labeler.partial_fit([], [])
    assert labeler.predict(["he"], house_of()) == [["john"]]
    with pytest.raises(ValueError, match="sentences is empty; a score needs at least one sentence"):
        labeler.score([], [])
    assert labeler.predict([], Universes.of([])) == []
