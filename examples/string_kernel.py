"""Tell the language of a word with a kernel on strings: how many pieces of up to three letters two words share."""

from collections import Counter
from functools import cache
from math import sqrt

import numpy as np
from sklearn.model_selection import cross_val_predict

from larank import LaRankClassifier

WORDS = {
    "Italian": """acqua albero amico anima bambino bandiera bellezza bicchiere bottega cammino canzone capello casa
        cavallo cielo coltello cucina cuore domani donna dolcezza farfalla fiore fiume forchetta fratello giardino
        giorno gioventu lavoro letto libro luce macchina mattina mercato montagna nascita notte occhio orologio parola
        pioggia pittura povero primavera quaderno ragazzo sabbia scuola sorella specchio stella strada tavolo terra
        uccello vecchiaia vento viaggio zucchero""",
    "German": """abend abschied apfel arbeit augenblick baum berg blumenstrauss bruder brunnen buchstabe dorf durst
        eisenbahn fenster fluss freiheit freund freundschaft frieden garten gedanke geschichte gesicht gewitter
        handschuh haus herbst himmel jahrhundert kirsche kleid kraft kuchen landschaft leben licht messer mittag mutter
        nachbar nacht pferd pflanze schatten schiff schlaf schmetterling schnee schule schwester sprache stern strasse
        stunde tisch traum vogel wald wasser werkzeug wissenschaft wolke zwiebel""",
    "Finnish": """aamu aika aurinko elokuu hedelma hevonen huomenna ihminen ilma isoaiti joki jaatelo kaupunki kesa
        keskiviikko kevat kirja kirjasto kivi koira koulu kukka kuningas kuu kyyhkynen lampo lapsi lehmus leipa lintu
        lumihiutale maanantai maito mansikka matka metsa mokki muisti naapuri nainen niitty nuoruus omena onnellisuus
        paiva perhonen poika puutarha rakkaus ranta saari sateenkaari sisko sunnuntai syksy taivas talvi tuli tuuli
        tyttarentytar ukkonen vesi viikko yliopisto ystava""",
}


@cache
def pieces(word, longest=3):
    """The pieces of a word with its ends marked, how often each occurs, and the length of that vector of counts."""
    word = f"<{word}>"
    counts = Counter(word[i : i + n] for n in range(1, longest + 1) for i in range(len(word) - n + 1))
    return counts, sqrt(sum(n * n for n in counts.values()))


def similarity(word, other):
    """1 for the same pieces equally often, 0 for none in common."""
    (few, length), (many, other_length) = sorted((pieces(word), pieces(other)), key=lambda found: len(found[0]))
    return sum(n * many[piece] for piece, n in few.items()) / (length * other_length)


def spectrum(A, B):
    """The kernel: its values for all words in A with all in B."""
    return [[similarity(a, b) for b in B] for a in A]


words = [word for listed in WORDS.values() for word in listed.split()]
languages = np.array([language for language, listed in WORDS.items() for _ in listed.split()])

model = LaRankClassifier(kernel=spectrum, C=10, max_iter=2, random_state=0).fit(words, languages)
result = model.result_
print(f"{len(words)} words, {result.support_patterns} of them support patterns, {result.kernel_values} kernel values")
print(f"objective {result.primal:.2f}, no model is below {result.dual:.2f}")
print("new words: " + ", ".join(f"{word} {model.predict([word])[0]}" for word in ("schwarz", "bianco", "valkoinen")))

guesses = cross_val_predict(model, words, languages, cv=5)
print(f"error {np.mean(guesses != languages):.0%} by cross-validation, for instance:")
for wrong in np.flatnonzero(guesses != languages)[::8]:
    print(f"  {words[wrong]} was taken for {guesses[wrong]}")
