"""The HTML page: well-formed, self-contained, and safe whatever the labels are."""

import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from larank import _core, report
from larank.training.result import Checkpoint, Result

EVIL = "<script>alert('x')</script><img src=\"http://example.com/x.png\">&amp;"
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.tags = []
        self.attributes = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data


def a_result(**changes):
    points = (Checkpoint(0.1 * k, float(k), 10 + 90 / k, 10 - 9 / k, 1 / k, exact=k % 3 == 0) for k in range(1, 12))
    result = Result("sdm", "converged", 10.25, 10.0, 0.01, 11.0, 1.1, 12072, 20000, history=tuple(points))
    return replace(result, **changes)


def written(folder, result=None, **options):
    path = folder / "report.html"
    rows = options.pop("rows", [{"model": "ours", "test error": "2.80%"}])
    report.write_report(path, options.pop("title", "A title"), rows, result or a_result(), **options)
    return path.read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_complete(tmp_path):
    parameters, data = {"C": 0.5, "class_weight": None, "tol": 1e-5}, {"training examples": 16000}
    tables = {"Worst classes": [{"class": "G", "errors": 7}]}
    page = Page(written(tmp_path, parameters=parameters, data=data, tables=tables, notes=["A note."]))
    assert page.tags.count("h1") == 1
    assert page.tags.count("svg") == 2
    shown = ["A title", "ours", "2.80%", "A note.", "Worst classes", "16000", "1e-05", "None"]
    shown += ["converged", "10.25", "2.44e-02", "12072", "1.10", _core.simd_level(), "scikit-learn"]
    assert [piece for piece in shown if piece not in page.text] == []


def test_the_page_needs_nothing_from_elsewhere(tmp_path):
    text = written(tmp_path)
    page = Page(text)
    assert not re.search("https?:|@import", text)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert all(value.startswith("#") for name, value in page.attributes if name in ("href", "src"))
    assert all(name.startswith("#") for name in re.findall(r"url\(\s*['\"]?([^)'\"]*)", text))


def test_everything_from_outside_is_escaped(tmp_path):
    row, pair = {EVIL: EVIL, "class": np.str_(EVIL)}, {EVIL: EVIL}
    text = written(tmp_path, title=EVIL, rows=[row], parameters=pair, data=pair, tables={EVIL: [row]}, notes=[EVIL])
    page = Page(text)
    assert not {"script", "img"} & set(page.tags)
    assert page.text.count(EVIL) == 2 + 3 + 2 + 2 + 1 + 3 + 1  # title twice, each table with a heading cell
    for title in ("{title}", "100 % {0}", "Größe <π>"):
        assert Page(written(tmp_path, title=title)).text.count(title) == 2


def history(*points):
    """A history of primal and dual objectives."""
    return tuple(Checkpoint(float(k), 1.0 + k, *point, 0.0, True) for k, point in enumerate(points))


HISTORIES = [(), history((5.0, 1.0)), history((math.inf, 0.0), (math.nan, 0.0)), history(*[(1.0, 1.0)] * 2)]
HISTORIES += [history(*[(0.0, 0.0)] * 2)]


@pytest.mark.parametrize("history", HISTORIES, ids=["none", "one point", "not finite", "no gap", "all zero"])
def test_odd_histories_are_no_obstacle(history, tmp_path):
    assert "objective is zero" in Page(written(tmp_path, a_result(history=history, primal=0.0, dual=0.0))).text


def test_without_matplotlib_the_page_is_whole_and_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = Page(written(tmp_path, tables={"Classes": [{"class": "a", "errors": 3}]}))
    assert "svg" not in page.tags
    assert 'The plot is drawn by matplotlib, which is not installed: pip install "larank[plot]"' in page.text
    assert all(piece in page.text for piece in ("A title", "10.25", "Convergence", "Classes"))


def test_drawing_leaves_the_callers_matplotlib_alone(tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    written(tmp_path)
    assert dict(mpl.rcParams) == before


def test_errors_are_counted_by_class_and_by_pair():
    y = np.array(["a", "a", "a", "b", "b", "c"])
    predicted = np.array(["a", "b", "b", "b", "b", "d"])
    assert report.class_errors(y, predicted) == [
        {"class": "c", "examples": 1, "errors": 1, "error": "100.00%"},
        {"class": "a", "examples": 3, "errors": 2, "error": "66.67%"},
        {"class": "b", "examples": 2, "errors": 0, "error": "0.00%"},
    ]
    assert report.confusions(y, predicted) == [
        {"true class": "a", "predicted": "b", "times": 2},
        {"true class": "c", "predicted": "d", "times": 1},
    ]
    assert report.confusions(y, y) == []


LABELS = [(3.0, "3"), (np.float64(-1), "-1"), (2.5, "2.5"), (np.int64(12345), "12345"), (np.str_("x"), "x")]
VALUES = [(None, "-"), (True, "yes"), (10805.0953, "10805.1"), (np.int64(7), "7"), (math.nan, "nan"), ("x", "x")]


def test_cells_are_short_and_labels_look_as_in_a_file():
    assert [report.format_label(value) for value, _ in LABELS] == [text for _, text in LABELS]
    assert [report.format_value(value) for value, _ in VALUES] == [text for _, text in VALUES]


def test_columns_of_numbers_are_recognised():
    rows = [{"a": "x", "b": 1, "c": "-2.5%", "d": None}, {"a": 3, "b": None, "c": "1 s", "d": "-"}]
    assert report.numeric_columns(rows) == {"b", "c"}


def test_the_work_of_a_kernel_solver_is_shown():
    figures = a_result(kernel_values=49_000_000, argmax_calls=190_000, violation=math.nan).figures()
    assert figures["kernel values"] == 49_000_000
    assert figures["arg max calls"] == 190_000
    assert "largest violation" not in figures
    assert not {"kernel values", "arg max calls"} & a_result().figures().keys()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dual": math.nan, "primal": -3.0}, "nothing bounds the objectives of other models"),
        ({"primal": math.inf}, "does not separate the classes, as hard margins demand"),
        ({"exact": False}, "not computed from scratch"),
    ],
)
def test_a_page_claims_no_optimum_where_there_is_no_bound(changes, said, tmp_path):
    result = a_result(**changes)
    assert ({"primal (estimate)", "gap (estimate)"} <= result.figures().keys()) == (not result.exact)
    text = Page(written(tmp_path, result)).text
    assert said in text
    assert "is optimal" not in text
    assert "above the optimum" not in text


class Axes:
    """What is drawn, by method."""

    def __init__(self):
        self.drawn = {}

    def __getattr__(self, name):
        return lambda *given, **settings: self.drawn.setdefault(name, []).append(given)


def drawn_by(draw, result):
    axes = Axes()
    draw(axes, result)
    return axes.drawn


def test_a_plot_shows_every_primal_objective_and_the_relative_gap_of_each_point():
    steep = a_result()  # its first objective is ten times the last
    drawn = drawn_by(report._draw_objectives, steep)
    ((low, high),) = drawn["set_ylim"]
    assert drawn["set_yscale"] == [("log",)]
    assert high > max(point.primal for point in steep.history)
    assert 0 < low < steep.dual
    flat = a_result(history=steep.history[5:])
    drawn = drawn_by(report._draw_objectives, flat)
    ((low, high),) = drawn["set_ylim"]
    assert "set_yscale" not in drawn
    assert low < min(point.dual for point in flat.history)
    assert high > max(point.primal for point in flat.history)
    heights = [height for _, heights in drawn_by(report._draw_gap, steep)["plot"] for height in heights]
    assert sorted(heights) == pytest.approx(sorted(point.gap / point.primal for point in steep.history))


def test_the_page_fits_a_phone_and_the_dark(tmp_path):
    text = written(tmp_path, tables={"Worst classes": [{"class": "a class with a long name", "errors": 7}]})
    style = re.search(r"(?s)<style>(.*?)</style>", text)[1]
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert text.count("<table>") == text.count("<div class='table'><table>") == 2
    assert ".table { overflow-x: auto; }" in style  # what is wider than the screen scrolls within its table
    cells = re.findall(r"(?:^|\n) *th, td \{([^}]*)\}", style)
    assert "anywhere" not in "".join(cells)  # which would let a column of words shrink to the width of a letter
    assert all("max-width" in each for each in cells)
    fixed = re.findall(r"(?<![-\w])(?:min-)?width: *([\d.]+)(?:px|rem|pt)", style)
    assert not fixed, "nothing is wider than 390 pixels on its own"
    # Plots stand below each other on a narrow page, and take its colours.
    assert ".plots { display: grid; grid-template-columns: repeat(auto-fit" in style
    assert "columns: 1;" in style[style.index("@media (max-width: 40rem)") :]
    assert "prefers-color-scheme: dark" in style
    colours = set(re.findall(r"var\(--(\w+)\)", text[text.index("<svg") : text.rindex("</svg>")]))
    assert colours >= {"ink", "rule", "primal", "dual", "gap"}


@pytest.mark.parametrize("exact", [True, False])
def test_the_page_shows_one_gap_which_is_relative_to_the_primal_objective(exact, tmp_path):
    result = a_result(primal=10.25, dual=8.0, exact=exact)  # gap 2.25, of the primal 22 %, of the dual 28 %
    text = Page(written(tmp_path, result)).text
    assert "2.20e-01" in text
    assert not re.search(r"\b2\.25|28\.1|duality gap|(?<!relative )gap \(estimate\)", text)
    assert ("relative gap (estimate)" in text) != exact
    if exact:
        assert "above the optimum by at most the relative gap, 2.20e-01 of its own objective" in text


def test_a_result_prints_as_a_short_table_and_has_all_in_a_dict():
    result = a_result()
    lines = str(result).splitlines()
    assert lines[:3] == ["solver             sdm", "status             converged", "primal objective   10.25"]
    assert len(lines) <= 12
    assert max(map(len, lines)) < 60
    assert len(repr(result)) < 500
    assert "history of 11 points" in repr(result)
    assert Result.from_dict(result.to_dict()) == result
