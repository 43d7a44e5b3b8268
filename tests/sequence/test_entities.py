"""Entities and their figures are those of conlleval."""

import json
from pathlib import Path

import numpy as np
import pytest

from larank.sequence.entities import Entity, EntityScore, entities, entity_report, has_chunks, repaired

# Random tags, most of them ill formed; entities, accuracy, precision, recall and F1 are those of seqeval 1.2.2.
CASES = json.loads((Path(__file__).parent / "entities.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["true"])
def test_entities_and_figures_are_those_of_another_implementation(case):
    true, predicted = case["true"].split(), case["predicted"].split()
    assert entities(true) == [tuple(entity) for entity in case["entities"]]
    report = entity_report([true], [predicted])
    found = report.accuracy, report.precision, report.recall, report.f1
    assert found == pytest.approx(case["figures"], abs=1e-11)


def test_all_sequences_at_once_are_as_one_after_the_other():
    true, predicted = ([case[which].split() for case in CASES] for which in ("true", "predicted"))
    report = entity_report(true, predicted)
    pairs = [(set(entities(t)), set(entities(p))) for t, p in zip(true, predicted, strict=True)]
    counts = [(len(t), len(p), len(t & p)) for t, p in pairs]
    assert report.overall == EntityScore(*np.sum(counts, axis=0).tolist())
    for name, score in report.types.items():
        of_type = [[{entity for entity in found if entity.type == name} for found in pair] for pair in pairs]
        assert score.true == sum(len(t) for t, _ in of_type)
        assert score.correct == sum(len(t & p) for t, p in of_type)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("I-A I-A B-A O I-A", [("A", 0, 2), ("A", 2, 3), ("A", 4, 5)]),  # IOB1
        ("B-A I-A B-A O B-A", [("A", 0, 2), ("A", 2, 3), ("A", 4, 5)]),  # IOB2
        ("I-A E-A I-A O I-A", [("A", 0, 2), ("A", 2, 3), ("A", 4, 5)]),  # IOE1
        ("B-A E-A S-A O S-A", [("A", 0, 2), ("A", 2, 3), ("A", 4, 5)]),  # IOBES
        ("B-A L-A U-A O U-A", [("A", 0, 2), ("A", 2, 3), ("A", 4, 5)]),  # BILOU
        ("B-A I-B O", [("A", 0, 1), ("B", 1, 2)]),  # another type is another entity
        ("B I O B", [("", 0, 2), ("", 3, 4)]),  # without types
        ("B-A-B I-A-C", [("A-B", 0, 1), ("A-C", 1, 2)]),  # the type begins after the first hyphen
        ("NOUN VERB NOUN", []),
        ("O O", []),
    ],
)
def test_schemes_are_read_by_one_set_of_rules(tags, found):
    assert entities(tags.split()) == [Entity(*entity) for entity in found]


def test_entities_end_with_their_sequence_and_none_have_no_score_above_zero():
    assert entity_report([["B-A"], ["I-A"]], [["B-A"], ["I-A"]]).overall == EntityScore(2, 2, 2)
    report = entity_report([["O", "O"]], [["O", "B-A"]])
    assert (report.overall.precision, report.overall.recall, report.overall.f1) == (0.0, 0.0, 0.0)
    assert report.accuracy == 0.5


def test_table_has_a_line_for_each_type_and_one_for_all():
    report = entity_report([["B-A", "B-B", "B-C"]], [["B-A", "B-B", "B-B"]])
    first, *lines = [line.split() for line in str(report).splitlines()]
    assert first == ["2", "of", "3", "tokens", "correct,", "66.67%"]
    assert [line[0] for line in lines] == ["type", "A", "B", "C", "all"]
    assert lines[2] == ["B", "50.00%", "100.00%", "66.67%", "1", "2", "1"]


@pytest.mark.parametrize("tags", [["B-NP", "I-NP", "O"], ["NOUN", "O"], ["O"], [3, 4], []])
def test_tags_of_chunks_are_recognised(tags):
    assert has_chunks(tags) == ("B-NP" in tags)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: entity_report([["O"]], [["O"], ["O"]]), ValueError, "y_true has 1 sequences and y_pred 2"),
        (lambda: entity_report([["O", "O"]], [["O"]]), ValueError, r"y_true\[0\] has 2 tags and y_pred\[0\] 1"),
        (lambda: entity_report([], []), ValueError, "y_true has no tags"),
        (lambda: entity_report(["O"], ["O"]), TypeError, r"y_true\[0\] is 'O'; a sequence of tags is expected"),
        (lambda: entity_report([[1]], [[1]]), TypeError, "the tag 1 is of type int"),
        (lambda: repaired([["O"], ["O", "NP"]]), ValueError, r"tags\[1\]\[1\] must be O, or B, .* type, got 'NP'"),
        (lambda: repaired([["B"]]), ValueError, r"tags\[0\]\[0\] must be O, or"),
        (lambda: repaired(["B-X"]), TypeError, r"tags\[0\] is 'B-X'; a sequence of tags is expected"),
        (lambda: repaired([[3]]), TypeError, "the tag 3 is of type int"),
        (lambda: repaired([["O"]], "IOB1"), ValueError, "scheme must be one of 'BIO', 'BILOU', got 'IOB1'"),
    ],
)
def test_tags_that_cannot_be_read_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_every_sequence_is_read_once():
    reads = []

    class Tags(list):
        def __iter__(self):
            reads.append(id(self))
            return super().__iter__()

    numbers = np.random.default_rng(0).integers(0, 5, (2, 200, 24))
    true, predicted = ([Tags(np.array(["O", "B-A", "I-A", "B-B", "I-B"])[row]) for row in rows] for rows in numbers)
    assert entity_report(true, predicted).tokens == 4800
    assert sorted(reads) == sorted(map(id, true + predicted))


@pytest.mark.parametrize(
    ("tags", "scheme", "mended"),
    [
        (["I-A", "I-A", "O", "I-A", "I-B"], "BIO", ["B-A", "I-A", "O", "B-A", "B-B"]),
        (["B-A", "I-B", "E-B", "S-A"], "BIO", ["B-A", "B-B", "I-B", "B-A"]),
        (["I-A", "I-A", "I-A", "B-A"], "BILOU", ["B-A", "I-A", "L-A", "U-A"]),
        ([], "BIO", []),
    ],
)
def test_tags_are_repaired_as_they_are_read(tags, scheme, mended):
    assert repaired([tags, tags], scheme) == [mended, mended]
    assert entities(repaired([tags], scheme)[0]) == entities(tags)
    assert repaired([mended], scheme) == [mended]
