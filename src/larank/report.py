"""One self-contained HTML page about one training run: what came out, how far from optimal, how it got there.

A table here is a list of rows, each a mapping from column heading to value; the command line prints the same
rows on the terminal.
"""

from __future__ import annotations

import importlib.util
import io
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from importlib import metadata, resources
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt

from larank import _core
from larank.data.files import atomic_write
from larank.training.result import Checkpoint, Result

Row = Mapping[str, object]


def write_report(
    path: str | os.PathLike[str],
    title: str,
    rows: Sequence[Row],
    result: Result,
    *,
    parameters: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    tables: Mapping[str, Sequence[Row]] | None = None,
    notes: Iterable[str] = (),
) -> None:
    """Write the page; a file already there is replaced only once the new one is complete.

    Parameters
    ----------
    path : path-like
        Where to write.
    title : str
        The heading.
    rows : sequence of mappings
        The headline table: one row per model compared, the columns from the keys of the first row.
    result : Result
        The certificate and its history.
    parameters : mapping, optional
        The estimator's parameters, as `get_params` gives them.
    data : mapping, optional
        What it was trained on.
    tables : mapping from heading to rows, optional
        Further small tables, such as the classes with the most errors.
    notes : iterable of str, optional
        Sentences below the headline table.
    """
    # Parameters as one would type them, not as a table would show them: None, False, 1e-05.
    typed = {name: str(value) for name, value in (parameters or {}).items()}
    lists: dict[str, Mapping[str, object]] = {"Data": data or {}, "Parameters": typed}
    lists["Environment"] = environment()
    panels = [_panel(name, _list_html(values)) for name, values in lists.items() if values]
    panels += [_panel(name, _table_html(body)) for name, body in (tables or {}).items() if body]
    page = Template(resources.files("larank").joinpath("report.html").read_text("utf-8")).substitute(
        title=escape(title),
        rows=_table_html(rows),
        notes="".join(f"<p class='note'>{escape(note)}</p>" for note in notes),
        certificate=_tiles_html(_certificate(result)),
        bound=escape(_bound(result)),
        plot=_plot_html(result),
        panels="".join(panels),
        date=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    )
    with atomic_write(path) as file:
        file.write(page.encode())


def environment() -> dict[str, object]:
    """Versions and machine, as far as they can change a result or its speed."""
    packages = ("larank", "numpy", "scipy", "scikit-learn")
    return {
        **{name: metadata.version(name) for name in packages},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "SIMD level": _core.simd_level(),
    }


def class_errors(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> list[dict[str, object]]:
    """Count the errors of every class found in `y`, those with the highest error rate first."""
    rows = []
    classes, inverse = np.unique(y, return_inverse=True)
    examples = np.bincount(inverse, minlength=len(classes))
    errors = np.bincount(inverse[y != predicted], minlength=len(classes))
    for c in np.argsort(-errors / examples, kind="stable"):
        count, wrong = int(examples[c]), int(errors[c])
        figures = {"examples": count, "errors": wrong, "error": f"{wrong / count:.2%}"}
        rows.append({"class": format_label(classes[c]), **figures})
    return rows


def confusions(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> list[dict[str, object]]:
    """Count each pair of a true and another, predicted class, the most frequent first."""
    wrong = y != predicted
    known, codes = np.unique(np.concatenate([y[wrong], predicted[wrong]]), return_inverse=True)
    true, taken = np.split(codes.astype(np.int64), 2)
    pairs, counts = np.unique(true * len(known) + taken, return_counts=True)
    rows = []
    for k in np.argsort(-counts, kind="stable"):
        a, b = divmod(int(pairs[k]), len(known))
        pair = {"true class": format_label(known[a]), "predicted": format_label(known[b])}
        rows.append({**pair, "times": int(counts[k])})
    return rows


def format_label(label: object) -> str:
    """Write a class label as a data file would: 3, not 3.0."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)


def format_value(value: object) -> str:
    """Write any cell of a table: numbers with six significant digits at most, nothing as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return str(value)
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)


def numeric_columns(rows: Sequence[Row]) -> set[str]:
    """Name the columns that hold nothing but numbers, with or without a unit, to be aligned right."""

    def numeric(value: object) -> bool:
        return value is None or format_value(value).lstrip("-")[:1].isdigit()

    return {name for name in rows[0] if all(numeric(row.get(name)) for row in rows)}


def _certificate(result: Result) -> dict[str, object]:
    """Return the main figures with one gap, which is relative to the primal objective as in the plot."""
    figures = result.figures()
    if not result.exact and "relative gap" in figures:
        figures = {"relative gap (estimate)" if name == "relative gap" else name: figures[name] for name in figures}
    return {name: value for name, value in figures.items() if name not in ("duality gap", "gap (estimate)")}


def _bound(result: Result) -> str:
    if not result.has_objective:
        return "This solver minimises no objective, so there is no bound. Online error: on examples when they came."
    if math.isnan(result.dual):
        return "The problem is not convex: nothing bounds the objectives of other models."
    if not result.primal > 0:
        return "The objective is zero: the model is optimal."
    if not result.dual > 0:
        return "Training ended too early to bound the optimum from below."
    below = f"No model has an objective below {format_value(result.dual)}"
    if result.primal == math.inf:
        return f"{below}; this one does not separate the classes, as hard margins demand."
    if not result.exact:
        if result.primal_error is not None:
            return f"{below}; that of this one was computed from a random sample of the examples."
        return f"{below}; that of this one was not computed from scratch, only seen on the way."
    gap = f"{max(result.relative_gap, 0.0):.2e} of its own objective"
    return f"{below}; this one is above the optimum by at most the relative gap, {gap}."


# ---- HTML. Every text that comes from outside passes through `escape` in one of these functions. ----


def _table_html(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    columns, numeric = list(rows[0]), numeric_columns(rows)
    head = "".join(_cell_html("th", name, name in numeric) for name in columns)
    body = "".join(
        "<tr>" + "".join(_cell_html("td", row.get(name), name in numeric) for name in columns) + "</tr>" for row in rows
    )
    return f"<div class='table'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell_html(tag: str, value: object, numeric: bool) -> str:
    kind = " class='number'" if numeric else ""
    return f"<{tag}{kind}>{escape(format_value(value))}</{tag}>"


def _list_html(values: Mapping[str, object]) -> str:
    items = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(format_value(value))}</dd></div>" for name, value in values.items()
    )
    return f"<dl>{''.join(items)}</dl>"


def _tiles_html(values: Mapping[str, object]) -> str:
    return f"<div class='tiles'>{_list_html(values)}</div>"


def _panel(name: str, body: str) -> str:
    return f"<section class='panel'><h2>{escape(name)}</h2>{body}</section>"


def _plot_html(result: Result) -> str:
    if len(result.history) < 2:
        return "<p class='note'>Training ended before there was a history to plot.</p>"
    if importlib.util.find_spec("matplotlib") is None:
        missing = 'The plot is drawn by matplotlib, which is not installed: pip install "larank[plot]"'
        return f"<p class='note'>{escape(missing)}</p>"
    legend = "Dots: objectives computed from scratch. Pale: as the solver saw them on its way."
    if not result.has_objective:
        legend = "The share of the examples so far that were misclassified when they came."
    plots = "".join(_theme(svg) for svg in _plots_svg(result))
    return f"<div class='plots'>{plots}</div><p class='note'>{legend}</p>"


# ---- The plot. Matplotlib draws in these colours; the page's style sheet replaces them by its own. ----

_INKS = {"#010101": "var(--ink)", "#020202": "var(--rule)", "#030303": "var(--primal)"}
_INKS |= {"#040404": "var(--dual)", "#050505": "var(--gap)"}
_INK, _RULE, _PRIMAL, _DUAL, _GAP = _INKS


_MANY_TIMES = 5.0  # the objective at the end: from there on the axis is logarithmic
_DECADES_BELOW = 100.0  # such an axis begins this many times below the objective at the end


def _plots_svg(result: Result) -> list[str]:
    """One drawing for each plot, so that a page can put them one below the other."""
    if not result.has_objective:
        return [_plot_svg(_draw_online_error, result)]
    return [_plot_svg(draw, result) for draw in (_draw_objectives, _draw_gap)]


def _plot_svg(draw: Callable[[Any, Result], None], result: Result) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # A bare Figure needs no pyplot and leaves the caller's backend alone.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": draw.__name__, "font.size": 9}):
        figure = Figure(figsize=(4.3, 2.9), layout="constrained")
        axes = figure.subplots()
        draw(axes, result)
        _dress(axes)
        buffer = io.StringIO()
        silent = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=silent)
    return buffer.getvalue()


def _draw_objectives(axes: Any, result: Result) -> None:
    points = _finite(result.history)
    _draw(axes, points, [point.primal for point in points], _PRIMAL, "primal")
    _draw(axes, points, [point.dual for point in points], _DUAL, "dual")
    axes.set_title("objective")
    low = min((point.dual for point in points), default=0.0)
    high = max((point.primal for point in points), default=0.0)
    if high > _MANY_TIMES * result.primal > 0:
        # The first losses would flatten all that came later.
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(max(low, result.primal / _DECADES_BELOW), 1.2 * high)
    elif high > low:
        axes.set_ylim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    axes.legend(frameon=False, labelcolor=_INK)


def _draw_gap(axes: Any, result: Result) -> None:
    points = [point for point in _finite(result.history) if point.gap > 0 and point.primal > 0]
    _draw(axes, points, [point.gap / point.primal for point in points], _GAP, "gap")
    axes.set_title("relative gap")
    if points:
        axes.set_yscale("log")


def _draw_online_error(axes: Any, result: Result) -> None:
    points = [(point.seconds, point.online_error) for point in result.history if point.online_error is not None]
    axes.plot([seconds for seconds, _ in points], [error for _, error in points], color=_GAP, linewidth=1.4)
    axes.set_title("online error")


def _draw(axes: Any, points: Sequence[Checkpoint], values: Sequence[float], color: str, label: str) -> None:
    """Join the points computed from scratch by a line with dots, and the estimates by a pale one."""
    for exact in (False, True):
        seconds = [point.seconds for point in points if point.exact == exact]
        heights = [value for point, value in zip(points, values, strict=True) if point.exact == exact]
        look = {"marker": "o", "markersize": 3, "label": label} if exact else {"alpha": 0.35}
        axes.plot(seconds, heights, color=color, linewidth=1.4, **look)


def _finite(history: Iterable[Checkpoint]) -> list[Checkpoint]:
    return [point for point in history if math.isfinite(point.primal) and math.isfinite(point.dual)]


def _dress(axes: Any) -> None:
    axes.set_xlabel("seconds", color=_INK)
    axes.title.set_color(_INK)
    axes.title.set_fontsize(9)
    axes.tick_params(which="both", colors=_INK, length=0)
    axes.grid(color=_RULE, linewidth=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_RULE)


def _theme(svg: str) -> str:
    """Make a stand-alone SVG file a part of an HTML page: no prologue, no name spaces, the page's colours."""
    svg = svg[svg.index("<svg") :].replace("xlink:href", "href")
    for name_space in (' xmlns="http://www.w3.org/2000/svg"', ' xmlns:xlink="http://www.w3.org/1999/xlink"'):
        svg = svg.replace(name_space, "")
    for ink, variable in _INKS.items():
        svg = svg.replace(ink, variable)
    return svg
