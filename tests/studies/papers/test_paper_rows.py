"""The published tables are complete, and every expectation belongs to a row."""

from __future__ import annotations

import pytest

from studies.datasets import BINARY, SEQUENCES, SMALL
from studies.papers import active, concepttables, larank, lasvm, ospas, primal, sequence
from studies.papers.experiment import Published


@pytest.mark.parametrize(
    ("published", "figures"),
    [
        (larank.PUBLISHED, {"error", "dual", "seconds", "kernels"}),
        (lasvm.PUBLISHED, {"error"}),
        (sequence.PUBLISHED, {"accuracy", "seconds"}),
    ],
)
def test_published_rows_have_figures_and_expectations_belong_to_rows(published: Published, figures: set[str]) -> None:
    rows = {(name, row): set(found) for name, of in published.rows.items() for row, found in of.items()}
    assert all(figures <= found <= set(published.columns) for found in rows.values())
    assert set(published.expected) <= set(rows)
    assert all(low < high for bands in published.expected.values() for low, high in bands.values())


def test_published_tables_are_complete() -> None:
    assert all(set(row) == set(larank.PAPER) == {"letter", "usps", "mnist"} for row in larank.PAPER_ARGMAX.values())
    assert set(lasvm.PAPER) - set(lasvm.PAPER_FINISHING) == {"mnist"}
    for name, rows in lasvm.PAPER.items():
        assert set(rows) == {lasvm.LIBSVM, lasvm.ONE, *([lasvm.TWO] if name == "mnist" else [])}
    assert all({"vectors", "kernels"} <= set(lasvm.PAPER[name][lasvm.ONE]) for name in lasvm.PAPER_FINISHING)
    assert all(algorithm in lasvm._algorithms(dataset) for dataset, algorithm in lasvm.EXPECTED)
    for name, rows in sequence.PAPER.items():
        crfs = () if name == sequence.OCR else (sequence.CRF, sequence.CRF_ONLINE)
        assert set(rows) == {*sequence.ALGORITHMS, *crfs}
    assert set(sequence.PAPER) == set(sequence.PARAMETERS) == set(SEQUENCES)
    assert all("f1" in row for row in sequence.PAPER[sequence.CHUNKING].values())
    assert sum("dual" in row for row in sequence.PAPER[sequence.CHUNKING].values()) == 6
    assert {*lasvm.PAPER_FINISHING, *active.PROTOCOLS} <= set(BINARY)
    assert all(list(protocol.labels) == sorted(set(protocol.labels)) for protocol in active.PROTOCOLS.values())
    assert all(len(row) == len(ospas.LEVELS) == len(ospas.EXPECTED) for row in ospas.PAPER.values())
    assert set(primal.PAPER) == set(SMALL)


def test_what_is_expected_of_errors_on_the_house_is_true_of_the_thesis_and_not_of_others() -> None:
    methods = concepttables.METHODS
    published = {row: method.paper[1] for row, method in methods.items() if method.paper}
    assert (len(published), published[concepttables.SVM_X]) == (9, 42.61)
    held = [method.holds for method in methods.values() if method.holds]
    assert len(held) == 5
    for errors, holds in ((published, True), ({row: 100 - error for row, error in published.items()}, False)):
        assert [is_held(errors) for is_held in held] == [holds] * 5
