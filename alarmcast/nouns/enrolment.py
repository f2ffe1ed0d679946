"""Enrolment: machines come, bring their past, are learned again, and go."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from alarmcast.call import Ask, MachineName, named
from alarmcast.endpoint import Noun, S, operation
from alarmcast.upload import Upload
from wire.rest.enrolment import Enrol, Erased, HistoryLoaded, HistoryUnderWay, Reason
from wire.rest.enrolment import Enrolment as Enrolled
from wire.rest.jobs import JobView
from wire.rest.machines import MachineView

_STORING = 600.0  # seconds; a year of history takes a while to be stored


class Enrolment(Noun[S]):
    """``client.enrolment``; a machine is named ``site/machine``."""

    @operation("POST /v1/machines", Enrolled)
    def enrol(
        self,
        machine: MachineName,
        *,
        name: str | None = None,
        time_zone: str | None = None,
        catalogue: str | None = None,
        idempotency_key: str | None = None,
    ) -> Ask:
        """Enrol a machine and return it with the job that learns it; the same again changes nothing."""
        body = Enrol(**named(machine), name=name, time_zone=time_zone, catalogue=catalogue)
        return Ask(body=body, headers={"Idempotency-Key": idempotency_key})

    @operation("POST /v1/machines/{site}/{machine}/history", HistoryLoaded, seconds=_STORING)
    def load_history(
        self,
        machine: MachineName,
        file: Path | BinaryIO | bytes,
        *,
        name: str | None = None,
        serial: str | None = None,
        time_zone: str | None = None,
        told: Callable[[int], None] | None = None,
    ) -> Ask:
        """Load a machine's past (timestamp,alarm,serial as CSV, gzipped or not); ``told`` hears the bytes sent.

        ``time_zone`` is that of timestamps that name none, the machine's unless given; a file with rows of several
        machines needs the ``serial`` of this one.
        """
        called = name or (file.name if isinstance(file, Path) else None)
        params = {"name": called, "serial": serial, "time_zone": time_zone}
        return Ask(at=named(machine), params=params, content=Upload(file, told), media_type="text/csv")

    @operation("GET /v1/machines/{site}/{machine}/history", HistoryUnderWay)
    def history(self, machine: MachineName) -> Ask:
        """Return how far the file is that is being loaded for a machine right now."""
        return Ask(at=named(machine))

    @operation("POST /v1/machines/{site}/{machine}/refresh", JobView)
    def refresh(self, machine: MachineName) -> Ask:
        """Learn a machine again from its recent windows; return the job."""
        return Ask(at=named(machine))

    @operation("POST /v1/machines/{site}/{machine}/retire", MachineView)
    def retire(self, machine: MachineName, *, reason: str) -> Ask:
        """Let a machine go; its past stays."""
        return Ask(at=named(machine), body=Reason(reason=reason))

    @operation("POST /v1/machines/{site}/{machine}/erase", Erased)
    def erase(self, machine: MachineName, *, reason: str) -> Ask:
        """Remove a machine's events, memory and exams for good; return which versions had learned from it."""
        return Ask(at=named(machine), body=Reason(reason=reason))
