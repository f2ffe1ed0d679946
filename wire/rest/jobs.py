"""What is being learned."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import JobKind, JobState
from wire.identity import Identifier
from wire.timestamps import UtcDatetime

EXAMPLE_JOB: Final[dict[str, Any]] = {
    "id": 7,
    "site": "padova",
    "machine": "filler-1",
    "kind": "enrol",
    "state": "running",
    "created_at": "2026-11-16T08:00:00.000Z",
    "started_at": "2026-11-16T08:00:02.000Z",
    "finished_at": None,
    "finished_plant_at": None,
    "attempt": 1,
    "progress": {"stage": "training", "done": 12, "total": 40, "loss": 0.1873, "seconds_left": 41.0},
    "message": None,
    "model_version": None,
}


class ProgressView(BaseModel):
    """How far a job is."""

    stage: str = Field(description="waiting, queued, starting, dataset, training, memory, exams, gate or done.")
    done: int | None = Field(default=None, description="Epochs trained, or machines examined.")
    total: int | None = None
    loss: float | None = Field(default=None, description="Mean loss of the last epoch.")
    seconds_left: float | None = Field(default=None, description="Until this stage is over.")


class JobView(BaseModel):
    """One learning of one machine; its times are wall time unless they say otherwise."""

    model_config = ConfigDict(protected_namespaces=(), json_schema_extra={"examples": [EXAMPLE_JOB]})

    id: int
    site: Identifier
    machine: Identifier
    kind: JobKind
    state: JobState
    created_at: UtcDatetime
    started_at: UtcDatetime | None
    finished_at: UtcDatetime | None
    finished_plant_at: UtcDatetime | None = Field(
        default=None, description="When it ended in plant time, which is the time of versions and alarms."
    )
    attempt: int = Field(description="How often it was taken up; more than once if a worker died.")
    progress: ProgressView
    message: str | None = Field(description="What it waits for, or why it ended as it did.")
    model_version: str | None = Field(description="The version it made, promoted or rejected.")


class JobList(BaseModel):
    """Jobs, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"jobs": [EXAMPLE_JOB]}]})

    jobs: list[JobView]
