"""`larank info`: what is in a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import typer

from larank.cli.console import Debug, ModelFile, is_terminal, print_values, short, work
from larank.data import models
from larank.tables.columns import Column
from larank.training import Result

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def info(model_file: ModelFile, debug: Debug = False) -> None:
    """Show what is in a model file.

    Its kind, parameters, classes and certificate, and the version that wrote it. Long lists are cut on a terminal only.

    \b
    Example:
      larank info letter.larank
    """
    with work(debug):
        print_values(_flat(models.describe(model_file)))


def _is_step(value: Any) -> bool:
    """Whether it is one of a pipeline: a name, and what it stands for."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Lay nested metadata out as one table, without private state."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Result):
            value = value.figures()
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, models.ArrayInfo):
            value = f"{value.dtype}, {' x '.join(map(str, value.shape))}"
        if isinstance(value, list) and value and all(isinstance(each, Column) for each in value):
            value = {column.name: column.told() for column in value}
        if name == "steps" and isinstance(value, list) and all(_is_step(each) for each in value):
            flat.update(_flat(dict(value)))
        elif isinstance(value, Mapping):
            if name == "attributes":
                value = {each: value[each] for each in value if not each.startswith("_")}
            flat.update(_flat(value, f"{prefix}{name}."))
        elif isinstance(value, list | tuple):
            flat[f"{prefix}{name}"] = short(value) if is_terminal() else short(value, shown=len(value))
        else:
            flat[f"{prefix}{name}"] = value
    return flat
