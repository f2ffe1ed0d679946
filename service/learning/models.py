"""Values of learning: jobs, their progress, and requests to enrol a machine."""

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from service.http.message import Message
from wire.enums import JobKind, JobState
from wire.identity import MachineId

OPEN: Final = frozenset({JobState.COLLECTING, JobState.QUEUED, JobState.RUNNING})


@dataclass(frozen=True)
class Progress:
    """How far a job is; ``done`` of ``total`` counts epochs in training and machines in evaluation."""

    stage: str
    done: int | None = None
    total: int | None = None
    loss: float | None = None
    seconds_left: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Job:
    """One training of one machine. Its times are wall time; ``attempt`` counts how often it was claimed.

    ``finished_plant_at`` is the plant time of its end, shown beside versions and alarms. ``interruptions`` counts
    the attempts that ended in a kill or a crash.
    """

    id: int
    machine: MachineId
    kind: JobKind
    state: JobState
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    finished_plant_at: datetime | None = None
    owner: str | None = None
    attempt: int = 0
    interruptions: int = 0
    progress: Progress = field(default_factory=lambda: Progress("waiting"))
    message: Message | None = None
    version: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended yet."""
        return self.state in OPEN


@dataclass(frozen=True)
class NewMachine:
    """A machine to enrol; omitted values stay as they were if it was enrolled before."""

    id: MachineId
    name: str | None = None
    time_zone: str | None = None
    catalogue: str | None = None

    @property
    def fingerprint(self) -> str:
        """The digest of the request, the same for equal requests."""
        parts = (*self.id, self.name or "", self.time_zone or "", self.catalogue or "")
        return sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Enrolled:
    """The job that trains the machine, and whether the machine is new."""

    job: int
    is_new: bool
