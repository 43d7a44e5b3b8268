"""The options --checkpoint, --every and --resume of the commands that train."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from larank.cli.console import say

CheckpointTo = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Write the state of training to FILE now and then; it is removed once the model is saved.",
    ),
]
Every = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Seconds between two checkpoints, at least.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from --checkpoint, if that file is there.")]


def checkpoint_arguments(estimator: Any, file: Path | None, every: float, resume: bool) -> dict[str, Any]:
    """What `fit` is handed; nothing where no checkpoints are asked for."""
    if file is None:
        if resume:
            raise typer.BadParameter("--resume needs --checkpoint FILE, the file to go on from")
        return {}
    if "checkpoint" not in inspect.signature(estimator.fit).parameters:
        raise typer.BadParameter(f"--checkpoint cannot act: {type(estimator).__name__} has no checkpoints")
    if file.exists() and not resume:
        raise typer.BadParameter(f"{file} is there already: --resume goes on from it; to begin anew, remove it")
    return {"checkpoint": file, "every": every, "resume": resume}


def remove_checkpoint(estimator: Any, file: Path | None) -> None:
    """Once the model is saved; where training may go on, the checkpoint stays."""
    if file is None:
        return
    if estimator.result_.status in ("converged", "completed", "precision"):
        file.unlink(missing_ok=True)
    else:
        say(f"{file} stays: the same command with --resume goes on from it")
