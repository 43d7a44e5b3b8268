"""A story in a house, word by word: who "he" is and which ball is meant, by what is known of the house.

The labeller learns from sentences of the simulated house, in which "ball" is also said of the football. Then a story is
told. Each sentence is labelled, what it says happens, and the next one is understood in the house as it is then.
"""

from larank import ConceptLabeler
from larank.ambiguous.house import House, make_triples
from larank.ambiguous.verbs import CONCEPTS, FRAMES, Event, execute, is_coherent

RELATIONS = ("location", "containedby")
PLACES = {"john": "kitchen", "mark": "garden", "harry": "hall", "gina": "livingroom", "francoise": "bathroom"}
PLACES |= {"maggie": "bedroom", "cat": "garden", "dog": "hall", "hamster": "bathroom", "rabbit": "bedroom"}
ON = {"rice": ("cupboard", "kitchen"), "ball": ("sideboard", "livingroom"), "apple": ("table", "kitchen")}
STORY = """
he cooks the rice
she plays with the ball
he goes from the garden to the kitchen
the father gives it to him
mark eats it
it plays with the ball
gina brings it to the garden
the brother goes from the kitchen to the garden
gina gives it to him
he sits on the bench
"""


def one_word(words):
    return tuple("ball" if word == "football" else word for word in words)


def event_of(concepts, universe):
    """What a labelled sentence says: its verb, and the other concepts in the order of their words."""
    (verb,) = (name for name in concepts if CONCEPTS.get(name) == "verb")
    names = tuple(name for name in concepts if name not in ("-", verb))
    events = (Event(frame, names) for frame in FRAMES if frame.verb == verb)
    return next((event for event in events if is_coherent(universe, event)), None)


train = make_triples(6000, random_state=0)
labeler = ConceptLabeler(RELATIONS, random_state=0)
labeler.fit([one_word(words) for words in train.words], train.concepts, train.universes)
print(f"{len(train.words)} sentences in {labeler.result_.seconds:.1f} s\n")

universe = House(random_state=1).universe
universe.update(("location", name, room) for name, room in PLACES.items())
for thing, kind in CONCEPTS.items():
    if kind == "object":
        place, room = ON.get(thing, ("shelf", "bathroom"))
        universe.update([("containedby", thing, place), ("location", thing, room)])
universe.update([("containedby", "football", None), ("location", "football", "garden")])

for sentence in STORY.strip().splitlines():
    explanation = labeler.explain(sentence, universe)
    print(f"{sentence}\n  {' '.join(explanation.concepts)}")
    for step in explanation.steps:
        facts = [str(fact) for fact in step.facts if fact.value]
        if step.word in ("he", "she", "it", "him", "ball") and facts:
            print(f"  {step.word} is {step.concept}, not {step.runner_up}: {', '.join(facts[:3])}")
    event = event_of(explanation.concepts, universe)
    if event is None:
        print("  which cannot be")
    else:
        execute(universe, event)
place, holder = (universe.get(relation, "football") for relation in RELATIONS)
print(f"\nthe football is in the {place}, with the {holder}")
