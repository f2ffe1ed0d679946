"""Enrolment: machines come, bring their past, are learned again, and go."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import MachineName, RequestSpec, path_params
from alarmcast.upload import Upload
from wire.rest.enrolment import Enrol, EraseResult, HistoryLoaded, HistoryUnderWay, Reason
from wire.rest.enrolment import Enrolment as Enrolled
from wire.rest.histories import HistoryColumns, HistoryPreview
from wire.rest.jobs import JobView
from wire.rest.machines import MachineView

HistoryFile = Path | BinaryIO | bytes
_STORING = 600.0  # seconds; a year of history takes a while to be stored


class Enrolment(Resource[TransportT]):
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
    ) -> RequestSpec:
        """Enrol a machine and return it with the job that learns it; the same again changes nothing."""
        body = Enrol(**path_params(machine), name=name, time_zone=time_zone, catalogue=catalogue)
        return RequestSpec(body=body, headers={"Idempotency-Key": idempotency_key})

    @operation("POST /v1/machines/{site}/{machine}/history/preview", HistoryPreview, seconds=_STORING)
    def preview_history(
        self,
        machine: MachineName,
        file: HistoryFile,
        *,
        name: str | None = None,
        serial: str | None = None,
        time_zone: str | None = None,
        columns: HistoryColumns | None = None,
        code_map: bytes | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> RequestSpec:
        """Return what a file of a machine's past holds, and store nothing.

        The machine need not be enrolled; then ``time_zone`` is UTC by default.
        """
        asked = {"name": name, "serial": serial, "time_zone": time_zone}
        return _history_request(machine, file, asked, columns, code_map, on_progress)

    @operation("POST /v1/machines/{site}/{machine}/history", HistoryLoaded, seconds=_STORING)
    def load_history(
        self,
        machine: MachineName,
        file: HistoryFile,
        *,
        name: str | None = None,
        serial: str | None = None,
        time_zone: str | None = None,
        columns: HistoryColumns | None = None,
        code_map: bytes | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> RequestSpec:
        """Load a machine's past, gzipped or not: timestamp,alarm,serial, or with ``columns`` any CSV.

        ``on_progress`` gets the number of bytes sent. ``time_zone`` is that of timestamps without one;
        the machine's by default. A file with rows of several machines needs the ``serial`` of this one.
        ``code_map`` is CSV with the columns name and code.
        """
        asked = {"name": name, "serial": serial, "time_zone": time_zone}
        return _history_request(machine, file, asked, columns, code_map, on_progress)

    @operation("GET /v1/machines/{site}/{machine}/history", HistoryUnderWay)
    def history(self, machine: MachineName) -> RequestSpec:
        """Return how far the file is that is being loaded for a machine right now."""
        return RequestSpec(at=path_params(machine))

    @operation("POST /v1/machines/{site}/{machine}/refresh", JobView)
    def refresh(self, machine: MachineName) -> RequestSpec:
        """Learn a machine again from its recent windows; return the job."""
        return RequestSpec(at=path_params(machine))

    @operation("POST /v1/machines/{site}/{machine}/retire", MachineView)
    def retire(self, machine: MachineName, *, reason: str) -> RequestSpec:
        """Let a machine go; its past stays."""
        return RequestSpec(at=path_params(machine), body=Reason(reason=reason))

    @operation("POST /v1/machines/{site}/{machine}/erase", EraseResult)
    def erase(self, machine: MachineName, *, reason: str) -> RequestSpec:
        """Remove a machine's events, memory and exams for good; return which versions had learned from it."""
        return RequestSpec(at=path_params(machine), body=Reason(reason=reason))


def _history_request(
    machine: MachineName,
    file: HistoryFile,
    asked: dict[str, str | None],
    columns: HistoryColumns | None,
    code_map: bytes | None,
    on_progress: Callable[[int], None] | None,
) -> RequestSpec:
    params = {
        **asked,
        "name": asked["name"] or (file.name if isinstance(file, Path) else None),
        "code_map_bytes": len(code_map) if code_map else None,
        **({} if columns is None else columns.model_dump()),
    }
    content = Upload(file, on_progress, code_map or b"")
    return RequestSpec(at=path_params(machine), params=params, content=content, media_type="text/csv")
