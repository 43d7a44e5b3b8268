"""Sentences as a child may hear them, with nested meanings: a set in the manner of AMBIGCHILD-WORLD, [thesis] 6.2.2.

A grammar makes sentence and meaning together. A meaning has one to four relations: a verb with one to three arguments,
of which one may be a clause, or two clauses with a conjunction. Roles cannot be told by position alone, since there are
passives ("the box was broken by the dog") and datives of two kinds ("gives the dog the ball", "gives the ball to the
dog"). Words have synonyms, verbs have forms, and three words mean two symbols each: saw, bat and duck.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from larank.ambiguous.draws import Item, RandomState, candidates, drawn, random_streams
from larank.ambiguous.meanings import EMPTY, Meaning, ParseExample
from larank.parameters import whole_number

# ---- Words: a symbol, then the phrases that mean it, with their head last; what is frequent comes before the rare ----

_CREATURES = {
    "mother": ("mommy", "mom", "mother"),
    "father": ("daddy", "dad", "father"),
    "dog": ("the dog", "the puppy"),
    "cat": ("the cat", "the kitten"),
    "baby": ("the baby",),
    "grandmother": ("grandma", "granny"),
    "grandfather": ("grandpa",),
    "sister": ("the sister", "anna"),
    "brother": ("the brother", "tom"),
    "bird": ("the bird",),
    "duck": ("the duck",),
    "rabbit": ("the rabbit", "the bunny"),
    "bat": ("the bat",),
}
_THINGS = {
    "ball": ("the ball", "a ball"),
    "box": ("the box", "a box"),
    "toy": ("the toy", "a toy"),
    "book": ("the book", "a book"),
    "cup": ("the cup", "the mug"),
    "cake": ("the cake", "some cake"),
    "apple": ("the apple", "an apple"),
    "doll": ("the doll", "a doll"),
    "car": ("the car",),
    "hat": ("the hat", "the cap"),
    "plate": ("the plate", "the dish"),
    "flower": ("a flower",),
    "stick": ("the stick", "the bat"),
    "handsaw": ("the saw",),
}
_PLACES = {
    "basket": ("the basket",),
    "garden": ("the garden", "the yard"),
    "bed": ("the bed",),
    "kitchen": ("the kitchen",),
    "bag": ("the bag",),
    "closet": ("the closet", "the cupboard"),
}
_KINDS = {"creature": _CREATURES, "thing": _THINGS, "any": _CREATURES | _THINGS, "place": _PLACES}
_PHRASES = _KINDS["any"] | _PLACES


class _Verb(NamedTuple):
    """A verb, the kinds of its arguments, and its forms: "breaks", "broke", "broken" and "break"."""

    symbol: str
    arguments: tuple[str, ...]
    present: str
    past: str
    participle: str
    infinitive: str


def _verbs(arguments: str, *lines: str) -> tuple[_Verb, ...]:
    kinds = tuple(arguments.split())
    return tuple(_Verb(forms[3], kinds, *forms) for forms in (line.split() for line in lines))


_PLAIN = (
    _verbs(
        "creature",
        "sleeps slept slept sleep",
        "runs ran run run",
        "laughs laughed laughed laugh",
        "cries cried cried cry",
        "jumps jumped jumped jump",
        "ducks ducked ducked duck_down",
    ),
    _verbs(
        "creature any",
        "sees saw seen see",
        "likes liked liked like",
        "holds held held hold",
        "finds found found find",
        "kicks kicked kicked kick",
        "washes washed washed wash",
        "follows followed followed follow",
    ),
    _verbs(
        "creature thing",
        "breaks broke broken break",
        "takes took taken take",
        "drops dropped dropped drop",
        "makes made made make",
    ),
    _verbs(
        "creature thing creature",
        "gives gave given give",
        "shows showed shown show",
        "brings brought brought bring",
        "throws threw thrown throw",
    ),
    _verbs("creature thing place", "puts put put put", "hides hid hidden hide"),
)
_WITH_CLAUSE = (
    _verbs(
        "creature clause",
        "believes believed believed believe",
        "says said said say",
        "sees saw seen see",
        "thinks thought thought think",
        "knows knew known know",
        "hears heard heard hear",
    ),
    _verbs("creature wish", "wants wanted wanted want"),
    _verbs("creature creature clause", "tells told told tell"),
)
_CONJUNCTIONS = ("because", "while", "after")
_SHARE_OF_RELATIONS = (0.35, 0.35, 0.2, 0.1)  # meanings with one, two, three, four relations
_CONJOINED, _PASSIVE, _DATIVE = 0.25, 0.25, 0.5  # how often, where it is possible


# ---- Meanings ----


class _Clause(NamedTuple):
    """A verb and its arguments: symbols of nouns, or clauses."""

    verb: _Verb
    arguments: tuple[str | _Clause, ...]


class _Pair(NamedTuple):
    """Two clauses and what joins them."""

    conjunction: str
    clauses: tuple[_Clause, _Clause]


def _draw(random: Random) -> _Clause | _Pair:
    at = random.random()
    n = next(k + 1 for k in range(4) if at < sum(_SHARE_OF_RELATIONS[: k + 1]) or k == 3)
    if n >= 3 and random.random() < _CONJOINED:
        first = 1 + int(random.random() * (n - 2))
        return _Pair(_ranked(random, _CONJUNCTIONS), (_clause(random, first), _clause(random, n - 1 - first)))
    return _clause(random, n)


def _clause(random: Random, relations: int) -> _Clause:
    verb = _ranked(random, drawn(random, _PLAIN if relations == 1 else _WITH_CLAUSE))
    arguments: list[str | _Clause] = []
    for kind in verb.arguments:
        if kind in ("clause", "wish"):
            arguments.append(_clause(random, relations - 1))
        else:
            arguments.append(_ranked(random, tuple(name for name in _KINDS[kind] if name not in arguments)))
    return _Clause(verb, tuple(arguments))


def _ranked(random: Random, items: tuple[Item, ...]) -> Item:
    """One of the items, the first more often than the last."""
    return items[int(len(items) * random.random() ** 1.5)]


def _meaning(told: str | _Clause | _Pair) -> Meaning:
    if isinstance(told, str):
        return Meaning(told)
    if isinstance(told, _Pair):
        return Meaning(told.conjunction, tuple(map(_meaning, told.clauses)))
    return Meaning(told.verb.symbol, tuple(map(_meaning, told.arguments)))


# ---- Sentences: words, each with its symbol ----

_Words = list[tuple[str, str]]


class _Teller:
    """Tells one sentence, all of it in one tense."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._is_past = random.random() < 0.5

    def tell(self, told: _Clause | _Pair) -> _Words:
        if isinstance(told, _Clause):
            return self._finite(told)
        first, second = map(self._finite, told.clauses)
        return [*first, (told.conjunction, told.conjunction), *second]

    def _finite(self, clause: _Clause) -> _Words:
        verb = clause.verb
        can_be_passive = len(clause.arguments) > 1 and verb.arguments[1] in ("thing", "any")
        if can_be_passive and self._random.random() < _PASSIVE:
            return self._passive(clause)
        form = verb.past if self._is_past else verb.present
        return [*self._noun(clause.arguments[0]), (form, verb.symbol), *self._objects(clause)]

    def _passive(self, clause: _Clause) -> _Words:
        verb, (agent, patient, *others) = clause
        by_whom = [("by", EMPTY), *self._noun(agent)]
        auxiliary = ("was" if self._is_past else "is", EMPTY)
        return [*self._noun(patient), auxiliary, (verb.participle, verb.symbol), *self._aims(verb, others), *by_whom]

    def _wished(self, clause: _Clause) -> _Words:
        verb = clause.verb
        infinitive = verb.infinitive.partition("_")[0]
        return [*self._noun(clause.arguments[0]), ("to", EMPTY), (infinitive, verb.symbol), *self._objects(clause)]

    def _objects(self, clause: _Clause) -> _Words:
        verb, (_, *others) = clause
        if verb.arguments[1:] == ("thing", "creature") and self._random.random() < _DATIVE:
            return [*self._noun(others[1]), *self._noun(others[0])]
        words: _Words = []
        for kind, other in zip(verb.arguments[1:], others, strict=True):
            if isinstance(other, _Clause):
                words += self._wished(other) if kind == "wish" else [("that", EMPTY), *self._finite(other)]
            elif other is others[0]:
                words += self._noun(other)
            else:
                words += self._aims(verb, [other])
        return words

    def _aims(self, verb: _Verb, others: list[str | _Clause]) -> _Words:
        preposition = "in" if verb.arguments[-1] == "place" else "to"
        return [pair for other in others for pair in [(preposition, EMPTY), *self._noun(other)]]

    def _noun(self, name: str | _Clause) -> _Words:
        assert isinstance(name, str)  # clauses are never subjects
        *before, head = _ranked(self._random, _PHRASES[name]).split()
        return [*((word, EMPTY) for word in before), (head, name)]


def make_child_world(
    n_train: int = 900, n_test: int = 25, *, level: int = 0, random_state: RandomState = None
) -> tuple[list[ParseExample], list[ParseExample]]:
    """Make sentences with nested meanings, each with meanings it may have.

    Parameters
    ----------
    n_train, n_test : int
        How many sentences there are for training and for test. Meanings for test need not occur in training.
    level : int, default=0
        How many wrong candidates a training sentence has on average, from 0 to twice as many. They are meanings of
        other sentences.
    random_state : int, RandomState or None
        What sentences and candidates depend on; the sentences are the same at every level.

    Returns
    -------
    train, test : lists of ParseExample
        Those for training have candidates alone; those for test have the meaning and the symbol of each word.

    Examples
    --------
    >>> train, test = make_child_world(3, 1, level=1, random_state=0)
    >>> len(test[0].words) == len(test[0].symbols)
    True
    """
    story, supervision = random_streams(random_state, 2)
    level = whole_number("level", level, at_least=0)
    n_train = whole_number("n_train", n_train, at_least=0)
    examples = [_example(story) for _ in range(n_train + whole_number("n_test", n_test, at_least=0))]
    train = [_offered(example, level, supervision) for example in examples[:n_train]]
    return train, examples[n_train:]


def _example(random: Random) -> ParseExample:
    told = _draw(random)
    words, symbols = zip(*_Teller(random).tell(told), strict=True)
    return ParseExample(words, (), _meaning(told), symbols)


def _offered(example: ParseExample, level: int, random: Random) -> ParseExample:
    assert example.meaning is not None  # _example knows it
    return ParseExample(example.words, candidates(example.meaning, lambda: _meaning(_draw(random)), level, random))
