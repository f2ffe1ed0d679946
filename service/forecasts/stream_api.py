"""Route of the stream: forecasts and alarms as server-sent events."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from service.errors import InputRejected, NotFound, Unavailable
from service.forecasts.cache import ForecastCache
from service.forecasts.streams import StreamFilter, StreamHub, Subscription
from service.http.problems import responses
from service.http.server_sent_events import EventStream, Wake
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.machines.catalogue_store import CatalogueStore
from service.machines.models import Machine
from service.machines.site_filter import SiteFilteredMachines
from service.messaging.bus import AlarmEvent
from wire.enums import StreamKind
from wire.identity import ID_PATTERN, MachineId
from wire.rest.stream import Missed, RaisedAlarm
from wire.timestamps import from_us

_BATCH_DELAY_S = 0.1  # so that a flood is sent in few chunks
_MACHINES_PER_CHUNK = 50
_RETRY_HINT = b"retry: 2000\n\n"
_EXAMPLE = (
    'event: forecast\ndata: {"site":"padova","machine":"filler-1","as_of":"2026-11-16T08:20:00.000Z", …}\n\n'
    'event: alarm\ndata: {"site":"padova","machine":"filler-1","at":"2026-11-16T08:20:07.000Z","code":139,'
    '"text":"Film torn","severity":"high"}\n\n'
    'event: missed\ndata: {"count":12}\n\n: ping\n\n'
)
_STREAM = {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}}
_KINDS = "|".join(StreamKind)


@dataclass(frozen=True)
class StreamSources:
    """What a stream is made from."""

    streams: StreamHub
    machines: SiteFilteredMachines
    cache: ForecastCache
    catalogue: CatalogueStore


def router(sources: StreamSources) -> APIRouter:
    """Return the route of the stream."""
    routes = APIRouter(prefix="/v1", tags=["stream"])

    @routes.get(
        "/stream",
        response_class=StreamingResponse,
        responses={200: {"content": _STREAM, "description": "Events."}, **responses(404, 410, 422, 429, 503)},
    )
    async def follow_fleet(
        site: Annotated[str | None, Query(pattern=ID_PATTERN, description="Of this plant only.")] = None,
        machine: Annotated[
            str | None, Query(pattern=ID_PATTERN, description="Of this machine only; needs `site`.")
        ] = None,
        kinds: Annotated[
            str,
            Query(
                pattern=f"^({_KINDS})(,({_KINDS}))*$",
                max_length=100,
                description="What to tell, separated by commas.",
            ),
        ] = ",".join(StreamKind),
    ) -> StreamingResponse:
        """What happens, as server-sent events, until you leave.

        `forecast`: a machine's new forecast, as its forecast endpoint gives it; the present one of every machine
        comes first. `alarm`: a machine raised it, and it is stored. `missed`: so many alarms came faster than you
        read; the stream goes on with the newest. Of forecasts that wait for a slow reader only each machine's
        newest is sent. A comment every 15 seconds says that the stream is still there.
        """
        wanted = StreamFilter(frozenset(StreamKind(kind) for kind in kinds.split(",")), site, machine)
        machines = await run_in_threadpool(_wanted_machines, sources, wanted)
        wake = Wake()
        subscription = sources.streams.subscribe_for_user(wanted, wake)
        return EventStream(_events(sources, subscription, machines, wake), subscription.close)

    return routes


def _wanted_machines(sources: StreamSources, wanted: StreamFilter) -> list[Machine]:
    """Return the machines that match a filter, or raise what is wrong with it."""
    if wanted.machine is not None:
        if wanted.site is None:
            raise InputRejected("A machine is named together with its site; give site too.")
        machine = sources.machines.get(MachineId(wanted.site, wanted.machine))
        machine.require_active()
        return [machine]
    machines = [machine for machine in sources.machines.all() if wanted.matches(machine.id)]
    if wanted.site is not None and not machines:
        raise NotFound(f"There is no machine at the site {wanted.site}.")
    return machines


async def _events(
    sources: StreamSources, subscription: Subscription, machines: list[Machine], wake: Wake
) -> AsyncIterator[bytes]:
    yield _RETRY_HINT
    if StreamKind.FORECAST in subscription.filter.kinds:
        for first in range(0, len(machines), _MACHINES_PER_CHUNK):
            yield await run_in_threadpool(_present, sources, machines[first : first + _MACHINES_PER_CHUNK])
    while not sources.streams.closed:
        if not await wake.within(sources.streams.ping_interval_s):
            yield b": ping\n\n"
            continue
        if not sources.streams.closed:
            await asyncio.sleep(_BATCH_DELAY_S)
        missed, alarms, forecasts = subscription.take()
        sent = [_event("missed", Missed(count=missed).model_dump_json().encode())] if missed else []
        if any(alarm.encoded is None for alarm in alarms):
            await run_in_threadpool(_encode_alarms, sources, alarms)
        sent += [_event("alarm", alarm.encoded) for alarm in alarms if alarm.encoded]
        sent += [_event("forecast", encoded) for encoded in forecasts]
        yield b"".join(sent)


def _present(sources: StreamSources, machines: list[Machine]) -> bytes:
    """Return the newest forecasts; none while there is no model."""
    try:
        return b"".join(_event("forecast", newest.encoded) for newest in sources.cache.get_or_make(machines))
    except Unavailable:
        return b""


def _encode_alarms(sources: StreamSources, alarms: Sequence[AlarmEvent]) -> None:
    """Encode alarms once for all streams, and not in the ingest thread."""
    entries: dict[int, CatalogueEntry] = {}
    with suppress(Unavailable):
        entries = sources.catalogue.entries()
    for alarm in alarms:
        if alarm.encoded is None:
            entry = entries.get(alarm.code) or unknown_code(alarm.code)
            site, machine = alarm.machine
            at = from_us(alarm.at_us)
            view = RaisedAlarm(
                site=site, machine=machine, at=at, code=alarm.code, text=entry.text, severity=entry.severity
            )
            alarm.encoded = view.model_dump_json().encode()


def _event(kind: str, data: bytes) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"
