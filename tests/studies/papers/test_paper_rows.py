"""The published tables are complete, and every expectation belongs to a row."""

from __future__ import annotations

import pytest

from studies.datasets import BINARY, SEQUENCES, SMALL
from studies.papers import active, concepttables, larank, lasvm, ospas, primal, sequence
from studies.papers.experiment import Published

LARANK = {(name, row): {"error", "dual", "seconds", "kernels"} for name in larank.PAPER for row in larank.PAPER[name]}
LASVM = {(name, lasvm.LIBSVM): {"error"} for name in lasvm.PAPER}
LASVM |= {(name, lasvm.ONE): {"error", "vectors", "kernels"} for name in lasvm.PAPER_FINISHING}
LASVM |= {("mnist", row): {"error", "seconds"} for row in (lasvm.ONE, lasvm.TWO)}
CRFS = (sequence.CRF, sequence.CRF_ONLINE)
SEQUENCE = {
    (name, row): {"accuracy", "seconds"} | ({"f1"} if name == sequence.CHUNKING else set())
    for name in SEQUENCES
    for row in (*sequence.ALGORITHMS, *(() if name == sequence.OCR else CRFS))
}


@pytest.mark.parametrize(
    ("published", "wanted"),
    [(larank.PUBLISHED, LARANK), (lasvm.PUBLISHED, LASVM), (sequence.PUBLISHED, SEQUENCE)],
    ids=["larank", "lasvm", "sequence"],
)
def test_published_tables_are_complete(published: Published, wanted: dict[tuple[str, str], set[str]]) -> None:
    rows = {(name, row): set(figures) for name, of in published.rows.items() for row, figures in of.items()}
    assert set(rows) == set(wanted)
    assert all(wanted[key] <= figures <= set(published.columns) for key, figures in rows.items())
    assert set(published.expected) <= set(rows)
    bands = [band for figures in published.expected.values() for band in figures.values()]
    assert all(low < high for low, high in bands)


def test_rows_without_a_table_of_their_own_are_complete() -> None:
    assert all(set(row) == set(larank.PAPER) for row in larank.PAPER_ARGMAX.values())
    assert set(lasvm.PAPER) - set(lasvm.PAPER_FINISHING) == {"mnist"}
    assert {*lasvm.PAPER_FINISHING, *active.PROTOCOLS} <= set(BINARY)
    assert all(algorithm in lasvm._algorithms(dataset) for dataset, algorithm in lasvm.EXPECTED)
    assert sum("dual" in row for row in sequence.PAPER[sequence.CHUNKING].values()) == 6
    assert all(len(row) == len(ospas.LEVELS) == len(ospas.EXPECTED) for row in ospas.PAPER.values())
    assert set(primal.PAPER) == set(SMALL)
    assert all(list(protocol.labels) == sorted(set(protocol.labels)) for protocol in active.PROTOCOLS.values())


def test_what_is_expected_of_errors_on_the_house_is_true_of_the_thesis_and_not_of_others() -> None:
    methods = concepttables.METHODS
    published = {row: method.paper[1] for row, method in methods.items() if method.paper}
    assert (len(published), published[concepttables.SVM_X]) == (9, 42.61)
    held = [method.holds for method in methods.values() if method.holds]
    assert len(held) == 5
    for errors, holds in ((published, True), ({row: 100 - error for row, error in published.items()}, False)):
        assert [is_held(errors) for is_held in held] == [holds] * 5
