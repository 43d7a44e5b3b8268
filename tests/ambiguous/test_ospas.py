"""OSPAS does what algorithm 24 of the thesis says, step for step, and promises of its own."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank import _core
from larank.ambiguous.bags import role_bag, symbol_bag
from larank.ambiguous.meanings import parse_meaning
from properties import draws
from references.splitmix import SplitMix

STRATEGIES = ("random", "left-right", "order-free")


# ---- Algorithm 24, literally ----


def dual_step(scores, candidates, C, squared_norm):
    """Algorithm 23 over all pairs: the loss, and the change of the weights of each label.

    Sums are in the order of the core, because a full step ends where rounding decides which pairs are violated.
    """
    k = len(scores)
    right, wrong = sorted(candidates), [y for y in range(k) if y not in candidates]
    psi, loss = np.zeros(k), 0.0
    if not wrong or not right:
        return loss, psi
    weight, share = 1 / len(right), 1 / len(wrong)
    near = {y: [z for z in wrong if 1 - scores[y] + scores[z] > 0] for y in right}
    for y in right:
        psi[y] = weight * share * len(near[y])
        loss += sum(weight * share * (1 - scores[y] + scores[z]) for z in near[y])
    for z in wrong:
        psi[z] = -sum(weight for y in right if z in near[y]) * share
    if loss <= 0 or squared_norm == 0:
        return loss, np.zeros(k)
    return loss, min(C, loss / (squared_norm * psi @ psi)) * psi


class Literal:
    """The session in plain Python."""

    def __init__(self, C, strategy, update, seed, features, labels):
        self.C, self.strategy, self.update = C, strategy, update
        self.random = SplitMix(seed)
        self.W = np.zeros((features, labels))
        self.words = self.mistakes = self.updates = 0
        self.losses = 0.0

    def predict(self, word):
        scores = np.zeros(self.W.shape[1])
        for feature in word:
            scores = scores + self.W[feature]
        best = max(range(len(scores)), key=lambda y: (scores[y], y))
        return (best if scores[best] > 0 else -1), max(0.0, scores[best]), scores

    def choose(self, words, untried):
        if self.strategy == "random":
            return untried[self.random.below(len(untried))]
        if self.strategy == "left-right":
            return next((k for k in untried if k > self.last), untried[0])
        return max(untried, key=lambda k: (self.predict(words[k])[1], -k))

    def learn(self, words, keys, bag):
        bag, unlabeled, self.last = Counter(bag), list(range(len(words))), -1
        while unlabeled:
            size, untried = len(unlabeled), list(unlabeled)
            for _ in range(size):
                self.last = k = self.choose(words, untried)
                untried.remove(k)
                label, _, scores = self.predict(words[k])
                is_mistake = bag[keys[k], label] <= 0
                self.look(words[k], {y for (key, y), n in bag.items() if key == keys[k] and n > 0}, scores, is_mistake)
                if not is_mistake:
                    bag[keys[k], label] -= 1
                    unlabeled.remove(k)
                    break
            if len(unlabeled) == size:
                break

    def look(self, word, candidates, scores, is_mistake):
        loss, change = dual_step(scores, candidates, self.C, len(word))
        self.words += 1
        self.mistakes += is_mistake
        self.losses += loss
        if (is_mistake or self.update == "margin") and change.any():
            self.updates += 1
            self.W[list(word)] += change


# ---- The session ----


def flat(sentences):
    """The arguments of `learn`: of each sentence the features of its words, their keys, and its bag."""
    words = [sorted(word) for of_sentence, _, _ in sentences for word in of_sentence]
    starts = np.cumsum([0, *(len(of_sentence) for of_sentence, _, _ in sentences)])
    indptr = np.cumsum([0, *map(len, words)])
    pairs = [pair for _, _, bag in sentences for pair in bag]
    return {
        "starts": starts,
        "indptr": indptr,
        "indices": np.array([feature for word in words for feature in word], dtype=np.int32),
        "keys": np.array([key for _, keys, _ in sentences for key in keys], dtype=np.int32),
        "bag_starts": np.cumsum([0, *(len(bag) for _, _, bag in sentences)]),
        "bag_keys": np.array([key for key, _ in pairs], dtype=np.int32),
        "bag_labels": np.array([label for _, label in pairs], dtype=np.int32),
    }


def session(C=0.1, strategy="random", update="mistake", seed=0, features=12, labels=8):
    found = _core.Ospas(C=C, strategy=strategy, update=update, seed=seed)
    found.grow(features, labels)
    return found


def learn(model, sentences):
    model.learn(**flat(sentences), first=0, end=len(sentences))
    return model


def drawn(seed, n=40, features=12, labels=8, n_keys=1):
    """Sentences whose bags have a label for each word, and some more."""
    random = np.random.default_rng(seed)
    sentences = []
    for _ in range(n):
        length = random.integers(1, 7)
        words = [set(random.choice(features, random.integers(1, 4), replace=False).tolist()) for _ in range(length)]
        keys = random.integers(0, n_keys, length).tolist()
        bag = [(key, int(random.integers(labels))) for key in keys]
        bag += [(int(random.integers(n_keys)), int(random.integers(labels))) for _ in range(random.integers(0, 4))]
        sentences.append((words, keys, bag))
    return sentences


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("update", ["mistake", "margin"])
def test_the_session_takes_the_steps_of_algorithm_24(strategy, update):
    for seed, (n_keys, C) in enumerate(itertools.product([1, 3], [0.02, 0.125])):
        sentences = drawn(seed, n_keys=n_keys)
        model = session(C, strategy, update, seed)
        literal = Literal(C, strategy, update, seed, 12, 8)
        for n, sentence in enumerate(sentences):
            learn(model, [sentence])
            literal.learn([sorted(word) for word in sentence[0]], *sentence[1:])
            np.testing.assert_allclose(model.weights, literal.W, atol=1e-9, err_msg=f"sentence {n}")
        for name in ("words", "mistakes", "updates"):
            assert getattr(model.counters, name) == getattr(literal, name)
        assert model.counters.sentences == len(sentences)
        assert model.online.losses == pytest.approx(literal.losses)
        rows = flat(sentences)
        predicted = [literal.predict(sorted(word))[0] for words, _, _ in sentences for word in words]
        assert model.predict(rows["indptr"], rows["indices"]).tolist() == predicted


@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 1e6]))
@draws(60)
def test_a_step_from_any_weights_is_that_of_algorithm_23(seed, C):
    """A full step ends where pairs are no longer violated, up to rounding, so sentences of one word are compared."""
    random = np.random.default_rng(seed)
    for words, keys, bag in drawn(seed, n=10):
        model, literal = session(C, update="margin"), Literal(C, "random", "margin", 0, 12, 8)
        model.weights = random.normal(size=(12, 8))
        literal.W = model.weights
        learn(model, [(words[:1], keys[:1], bag)])
        literal.learn([sorted(words[0])], keys[:1], bag)
        np.testing.assert_allclose(model.weights, literal.W, atol=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_batch_makes_the_same_model_as_one_sentence_at_a_time(strategy):
    sentences = drawn(5)
    one_by_one, together, other_seed = (session(strategy=strategy, seed=seed) for seed in (0, 0, 1))
    for sentence in sentences:
        learn(one_by_one, [sentence])
    learn(together, sentences)
    assert np.array_equal(one_by_one.weights, together.weights)
    assert one_by_one.state == together.state
    assert np.array_equal(learn(other_seed, sentences).weights, together.weights) == (strategy != "random")


@given(st.integers(0, 10**6), st.sampled_from(STRATEGIES), st.sampled_from(["mistake", "margin"]))
@draws(40)
def test_the_order_of_a_bag_does_not_matter(seed, strategy, update):
    sentences = drawn(seed, n=10, n_keys=2)
    random = np.random.default_rng(seed)
    mixed = [(words, keys, [bag[i] for i in random.permutation(len(bag))]) for words, keys, bag in sentences]
    one, other = (learn(session(strategy=strategy, update=update), some) for some in (sentences, mixed))
    assert np.array_equal(one.weights, other.weights)


@given(st.integers(0, 10**6), st.sampled_from(STRATEGIES))
@draws(40)
def test_labels_and_features_that_come_later_have_zero_weights_until_then(seed, strategy):
    sentences = drawn(seed, n=8, labels=3, features=5)
    small = learn(session(strategy=strategy, features=5, labels=3), sentences)
    before = small.weights
    small.grow(40, 30)
    assert np.array_equal(small.weights[:5, :3], before)
    assert not small.weights[5:].any()
    assert not small.weights[:, 3:].any()
    small.grow(2, 2)
    assert (small.features, small.labels) == (40, 30)


def test_a_label_in_the_bag_is_used_as_often_as_it_is_there():
    word, other = {0}, {1}
    twice = learn(session(C=10.0), [([word], [0], [(0, 2)])])
    assert twice.predict(np.array([0, 1]), np.array([0], np.int32)).tolist() == [2]
    for words, bag, mistakes in (
        ([word, word], [(0, 2), (0, 2)], 0),  # both words find their label
        ([word, word], [(0, 2), (0, 5)], 1),  # the second does not
        ([other], [], 1),  # an empty bag has no label
    ):
        before = twice.counters.mistakes
        learn(twice, [(words, [0] * len(words), bag)])
        assert twice.counters.mistakes == before + mistakes


def test_a_bag_of_all_labels_teaches_nothing_and_a_word_without_a_positive_score_has_no_label():
    model = learn(session(labels=3, update="margin"), [([{0}, {1}], [0, 0], [(0, 0), (0, 1), (0, 2)])])
    assert (model.counters.updates, model.online.losses) == (0, 0.0)
    words = np.array([0, 1, 1]), np.array([0], np.int32)
    assert model.predict(*words).tolist() == [-1, -1]
    assert model.scores(*words).tolist() == [[0.0] * 3] * 2
    assert not model.weights.any()


def test_the_online_loss_keeps_the_bound_of_proposition_13():
    """Words look at one label each here, so a model without a loss exists, and the bound is on the mean loss itself."""
    C = 0.1
    model = session(C, "left-right", "margin")
    for feature in np.random.default_rng(0).integers(0, 12, 3000).tolist():
        learn(model, [([{feature}], [0], [(0, feature % 8)])])
    n, rho = model.counters.words, 2 * model.online.largest
    W = np.array([[float(label == feature % 8) for label in range(8)] for feature in range(12)])
    assert model.online.losses / n <= (W**2).sum() / (2 * n * C) + rho * C / 2


# ---- Bad input ----


NO_WORDS = np.array([0]), np.array([], np.int32)
ARRAYS_REFUSED = [
    ({"starts": np.array([0, 5])}, "starts must ascend"),
    ({"indptr": np.array([0, 2, 1])}, "indptr must ascend"),
    ({"indices": np.array([0, 99, 1], np.int32)}, "indices of a word must ascend"),
    ({"indices": np.array([1, 0, 1], np.int32)}, "indices of a word must ascend"),
    ({"keys": np.zeros(1, np.int32)}, "keys must be one per word"),
    ({"bag_starts": np.array([0, 9])}, "bag_starts must be"),
    ({"bag_keys": np.zeros(5, np.int32)}, "bag_keys and bag_labels"),
    ({"bag_labels": np.array([0, 8], np.int32)}, "bag_labels must be from 0"),
    ({"end": 2}, "first and end must be sentences"),
    ({"first": -1}, "first and end must be sentences"),
]
REFUSED = [
    *((lambda learn, wrong=wrong: learn(**wrong), message) for wrong, message in ARRAYS_REFUSED),
    (lambda _: session(labels=0).predict(*NO_WORDS), "there must be a label"),
    (lambda _: session(strategy="best"), "strategy must be one of 'random'"),
    (lambda _: session(update="best"), "update must be one of 'mistake'"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_does_not_fit_is_refused_and_changes_nothing(call, message):
    arguments = {**flat([([{0, 1}, {1}], [0, 0], [(0, 0), (0, 1)])]), "first": 0, "end": 1}
    model = session()
    model.learn(**arguments)
    before = model.weights
    with pytest.raises(ValueError, match=message):
        call(lambda **wrong: model.learn(**{**arguments, **wrong}))
    assert np.array_equal(model.weights, before)


# ---- Bags ----

symbols = st.sampled_from(["dog", "cat", "break", "see"])
meanings = st.recursive(symbols, lambda inner: st.builds("{}({}, {})".format, symbols, inner, inner), max_leaves=4)


@given(st.lists(meanings, min_size=1, max_size=4), st.integers(1, 8), st.randoms())
@draws(60)
def test_a_bag_is_the_smallest_in_which_each_candidate_finds_its_symbols(texts, n_words, random):
    candidates = [parse_meaning(text) for text in texts]
    bag = symbol_bag(candidates, n_words)
    needed = [Counter(meaning.symbols()) for meaning in candidates]
    for counts in needed:
        counts["-"] = max(0, n_words - counts.total())
        assert counts <= bag
    for symbol, count in bag.items():
        assert count == max(counts[symbol] for counts in needed)
    random.shuffle(candidates)
    assert symbol_bag([*candidates, *candidates], n_words) == bag


def test_roles_come_from_relations_whose_arguments_are_in_the_sentence():
    texts = "believe(mother, break(dog, box))", "break(cat, box)", "see(dog, box)"
    candidates = list(map(parse_meaning, texts))
    bag = role_bag("break", candidates, Counter(["mother", "believe", "dog", "box"]))
    roles = {"mother": "-", "believe": "-", "dog": "A0", "box": "A1"}
    assert bag == {symbol: Counter([role]) for symbol, role in roles.items()}
    assert role_bag("believe", candidates, Counter(["mother", "break"]))["break"] == Counter({"A1": 1})
    assert role_bag("break", candidates, Counter(["mother", "box"])) is None
    assert role_bag("give", candidates, Counter(["dog"])) is None
    both = role_bag("break", [parse_meaning("break(dog, dog)")], Counter(["dog"] * 3))
    assert both == {"dog": Counter({"A0": 1, "A1": 1, "-": 1})}
