"""Machines come and go."""

from pydantic import BaseModel, ConfigDict, Field

from wire.identity import Identifier
from wire.moment import Moment
from wire.rest.credentials import EXAMPLE_ISSUED, IssuedCredentials
from wire.rest.jobs import EXAMPLE_JOB, JobView
from wire.rest.machines import EXAMPLE_MACHINE, MachineView
from wire.rest.texts import Words
from wire.words import HistoryState


class Enrol(BaseModel):
    """A machine to enrol."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"site": "padova", "machine": "filler-1", "name": "Filler 1", "time_zone": "Europe/Rome"}]
        },
    )

    site: Identifier
    machine: Identifier
    name: Words | None = Field(
        default=None, max_length=200, description="What people call it; its id, or what it was, unless given."
    )
    time_zone: str | None = Field(
        default=None, max_length=64, description="The plant's zone, like Europe/Rome; UTC, or what it was."
    )
    catalogue: str | None = Field(
        default=None,
        max_length=1_000_000,
        description="CSV with code, text, severity and target, for codes that this machine brings.",
    )


class Enrolment(BaseModel):
    """The machine and the job that learns it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "machine": EXAMPLE_MACHINE | {"state": "learning", "learned_at": None},
                    "job": EXAMPLE_JOB,
                    "credentials": EXAMPLE_ISSUED,
                    "credentials_note": None,
                }
            ]
        }
    )

    machine: MachineView
    job: JobView
    credentials: IssuedCredentials | None = Field(
        default=None, description="Shown once, to whoever's request issued them; null in every other answer."
    )
    credentials_note: str | None = Field(
        default=None, description="Why none were issued though the broker may want some, and what to do."
    )


class HistoryLoaded(BaseModel):
    """What became of a file's rows."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "stored": 18230,
                    "duplicates": 0,
                    "flagged": 2,
                    "quarantined": 1,
                    "rows": 18233,
                    "examples": ["line 3: 'rubbish' is no timestamp"],
                    "last_at": "2026-11-15T21:40:12.000Z",
                }
            ]
        }
    )

    stored: int
    duplicates: int
    flagged: int = Field(description="Stored, but kept out of windows for their time.")
    quarantined: int = Field(description="Rows that are no alarm; kept whole with the reason.")
    rows: int = Field(description="Rows that were looked at: those of the serial asked for.")
    examples: list[str] = Field(description="Why the first of the quarantined rows are no alarms.")
    last_at: Moment | None = Field(
        description="The last alarm's time; an agent on the same log goes on from there."
    )


class HistoryUnderWay(BaseModel):
    """How far the file of a machine's past is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"state": "storing", "bytes": 10_485_760, "lines_done": 120_000, "lines": 314_159}]
        }
    )

    state: HistoryState
    bytes: int = Field(description="How much of it has come.")
    lines_done: int = Field(description="Lines that have been judged; they are committed ten thousand at a time.")
    lines: int | None = Field(description="Lines it has in all; null until it is here and whole.")


class Reason(BaseModel):
    """Why."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"reason": "Sold to another plant"}]}
    )

    reason: Words = Field(max_length=1000, description="Kept in the book of changes.")


class Erased(BaseModel):
    """What is left to say of a machine that was erased."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"learned_by": ["v1", "v2"]}]})

    learned_by: list[str] = Field(description="Versions that had learned from it.")
