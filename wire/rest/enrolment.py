"""Machines come and go."""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import HistoryState
from wire.identity import Identifier
from wire.rest.credentials import EXAMPLE_ISSUED, IssuedCredentials
from wire.rest.jobs import EXAMPLE_JOB, JobView
from wire.rest.machines import EXAMPLE_MACHINE, MachineView
from wire.rest.texts import PrintableText
from wire.timestamps import UtcDatetime


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
    name: PrintableText | None = Field(
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
        default=None, description="Shown once, in the response to the request that issued them; null otherwise."
    )
    credentials_note: str | None = Field(
        default=None, description="Why none were issued though the broker may want some, and what to do."
    )


EXAMPLE_SOURCE: Final = 'timezone = "Europe/Rome"\nserial = "3"\nsince = 2026-11-15T21:40:12.000001Z\n'


class HistoryLoaded(BaseModel):
    """What became of a file's rows."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "stored": 18230,
                    "duplicates": 0,
                    "flagged": 120,
                    "too_old": 120,
                    "from_the_future": 0,
                    "quarantined": 1,
                    "rows": 18351,
                    "examples": ["line 3: 'rubbish' is no timestamp"],
                    "notes": ["120 ignored: older than retention_days=400 (newest 2025-10-11)."],
                    "time_zone": "Europe/Rome",
                    "last_at": "2026-11-15T21:40:12.000Z",
                    "edge_toml_source": EXAMPLE_SOURCE,
                }
            ]
        }
    )

    stored: int
    duplicates: int
    flagged: int = Field(description="Rows left out for their time: too_old and from_the_future together.")
    too_old: int = Field(default=0, description="Rows that are older than retention_days; they are not stored.")
    from_the_future: int = Field(default=0, description="Rows that lie in the future; they are not stored.")
    quarantined: int = Field(description="Rows that are no alarm; kept whole with the reason.")
    rows: int = Field(description="Rows that were looked at: those of the serial asked for.")
    examples: list[str] = Field(description="Why the first of the quarantined rows are no alarms.")
    notes: list[str] = Field(default=[], description="What to know about rows that do not count, in sentences.")
    time_zone: str = Field(default="UTC", description="The zone in which timestamps that name none were read.")
    last_at: UtcDatetime | None = Field(
        description="The last alarm's time; an agent on the same log goes on from there."
    )
    edge_toml_source: str | None = Field(
        default=None,
        description="Lines for [source] in the edge.toml of an agent that follows the same log, in place of its "
        "timezone: with them it reads times as they were read here and goes on after the last alarm.",
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

    reason: PrintableText = Field(max_length=1000, description="Kept in the book of changes.")


class EraseResult(BaseModel):
    """What is left to say of a machine that was erased."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"learned_by": ["v1", "v2"]}]})

    learned_by: list[str] = Field(description="Versions that had learned from it.")
