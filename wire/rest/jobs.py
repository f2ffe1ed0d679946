"""What is being learned."""

from pydantic import BaseModel, Field

from wire.identity import Identifier
from wire.moment import Moment
from wire.words import JobKind, JobState


class ProgressView(BaseModel):
    """How far a job is."""

    stage: str = Field(description="waiting, queued, starting, dataset, training, memory, exams, gate or done.")
    done: int | None = Field(default=None, description="Epochs trained, or machines examined.")
    total: int | None = None
    loss: float | None = Field(default=None, description="Mean loss of the last epoch.")
    seconds_left: float | None = Field(default=None, description="Until this stage is over.")


class JobView(BaseModel):
    """One learning of one machine; its times are wall time."""

    id: int
    site: Identifier
    machine: Identifier
    kind: JobKind
    state: JobState
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    attempt: int = Field(description="How often it was taken up; more than once if a worker died.")
    progress: ProgressView
    message: str | None = Field(description="What it waits for, or why it ended as it did.")
    model_version: str | None = Field(description="The version it made, promoted or rejected.")


class JobList(BaseModel):
    """Jobs, newest first."""

    jobs: list[JobView]
