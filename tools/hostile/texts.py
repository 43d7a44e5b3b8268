"""Damaged universes, stories and sentences with meanings."""

from collections.abc import Iterator
from random import Random

from tools.hostile.campaign import Attack, Case
from tools.hostile.datafiles import due, names_its_file
from tools.hostile.mutations import damaged, packed

TABLE = b"""concept,kind,words,location:room,containedby(object):object,state=asleep|cooked,near:room:acyclic
john,actor,john father,kitchen,,,
kitchen,room,kitchen,,,,
hall,room,hall passage,,,,kitchen
box,object,box,hall,,,
rice,object,rice,kitchen,box,cooked,
"""
STORY = b"""location(john) = kitchen
he cooks the rice
john - - rice

location(john) = hall
location(rice) =
# a comment
he leaves
"""
MEANINGS = b"""john eats the rice
eat(john, rice)
believe(mother, eat(john, rice))

# a comment
the dog sleeps
sleep(dog)
"""
WORDS = tuple(b"(|)|()|=|:|:acyclic|location|location(|rice|box|containedby|-|(((((((((((|)))))|a(b,".split(b"|"))
STORIES = """
from larank.ambiguous.stories import read_story, write_story
from larank.ambiguous.universetable import read_table, write_table
table = read_table("data.csv")
write_table("again.csv", table.universe, table.words)
assert read_table("again.csv").universe.concepts == table.universe.concepts
read_story("data.txt", table.universe, needs_concepts={}, are_bags={})
"""
SENTENCES = 'from larank.ambiguous.meanings import read_examples\nread_examples("data.txt", needs_candidates={})'


def cases(random: Random) -> Iterator[Case]:
    while True:
        needed, bags = random.randrange(2) == 0, random.randrange(2) == 0
        files = {"data.csv": TABLE, "data.txt": STORY} if random.randrange(2) else {"data.txt": MEANINGS}
        hit = random.choice(sorted(files))
        files[hit] = packed(random, damaged(random, files[hit], WORDS))
        script = STORIES.format(needed, bags) if len(files) == 2 else SENTENCES.format(needed)
        yield Case(script, files, memory=due(files[hit]))


ATTACK = Attack(cases, names_its_file, warm_up="import larank.ambiguous.stories, larank.ambiguous.universetable")
