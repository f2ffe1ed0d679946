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
    """Where a job stands; ``done`` of ``total`` are epochs while training, machines while in exams."""

    stage: str
    done: int | None = None
    total: int | None = None
    loss: float | None = None
    seconds_left: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what is known of it."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Job:
    """One learning of one machine. Its times are wall time; ``attempt`` counts how often it was taken up.

    ``finished_plant_at`` is the plant time of its end, by which it is shown beside versions and alarms.

    ``cut_off`` counts how many of these ended without a word, by a kill or a crash.
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
        """Whether something may still come of it."""
        return self.state in OPEN


@dataclass(frozen=True)
class NewMachine:
    """A machine to enrol; what is not given stays as it was, if it was there before."""

    id: MachineId
    name: str | None = None
    time_zone: str | None = None
    catalogue: str | None = None

    @property
    def fingerprint(self) -> str:
        """What two requests have in common if they ask for the same."""
        parts = (*self.id, self.name or "", self.time_zone or "", self.catalogue or "")
        return sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Enrolled:
    """The job that learns the machine, and whether the machine is new."""

    job: int
    is_new: bool
