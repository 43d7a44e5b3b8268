"""Training in time, and what it proves: the loop, its results and its progress."""

from larank.training.checkpointfile import (
    CheckpointFile,
    CheckpointRequest,
    CheckpointWarning,
    DataPart,
    State,
    file_as_data,
    random_state_of,
    set_random_state,
)
from larank.training.interrupts import Interrupt, first_interrupt, on_interrupt, raises
from larank.training.loop import (
    CertificateWarning,
    FromScratch,
    Limits,
    Looks,
    Objectives,
    ObjectiveValues,
    Outcome,
    Resumable,
    SampledObjectives,
    Training,
    TrainingWarning,
    completed,
    train,
    warn_if_early,
)
from larank.training.progress import Progress, progress_for
from larank.training.result import Checkpoint, Result, Status
from larank.training.streams import check_arrived, check_resumes, cut_by

__all__ = [
    "CertificateWarning",
    "Checkpoint",
    "CheckpointFile",
    "CheckpointRequest",
    "CheckpointWarning",
    "DataPart",
    "FromScratch",
    "Interrupt",
    "Limits",
    "Looks",
    "ObjectiveValues",
    "Objectives",
    "Outcome",
    "Progress",
    "Result",
    "Resumable",
    "SampledObjectives",
    "State",
    "Status",
    "Training",
    "TrainingWarning",
    "check_arrived",
    "check_resumes",
    "completed",
    "cut_by",
    "file_as_data",
    "first_interrupt",
    "on_interrupt",
    "progress_for",
    "raises",
    "random_state_of",
    "set_random_state",
    "train",
    "warn_if_early",
]
