"""What happens, as it happens: forecasts and alarms as server-sent events."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from service.errors import InputRejected, NotFound, Unavailable
from service.forecasts.streams import StreamFilter, Subscription
from service.http.problems import responses
from service.http.server_sent_events import EventStream, Wake
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.machines.models import Machine
from service.messaging.bus import AlarmEvent
from wire.enums import StreamKind
from wire.identity import ID_PATTERN, MachineId
from wire.rest.stream import Missed, RaisedAlarm
from wire.timestamps import from_us

if TYPE_CHECKING:
    from service.app.api_services import AppServices

_GATHER = 0.1  # seconds in which what comes is sent together: a flood is told in few pieces
_AT_ONCE = 50  # machines whose first forecasts are sent in one piece
_BEGINNING = b"retry: 2000\n\n"
_EXAMPLE = (
    'event: forecast\ndata: {"site":"padova","machine":"filler-1","as_of":"2026-11-16T08:20:00.000Z", …}\n\n'
    'event: alarm\ndata: {"site":"padova","machine":"filler-1","at":"2026-11-16T08:20:07.000Z","code":139,'
    '"text":"Film torn","severity":"high"}\n\n'
    'event: missed\ndata: {"count":12}\n\n: ping\n\n'
)
_STREAM = {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}}
_KINDS = "|".join(StreamKind)


def router(parts: "AppServices") -> APIRouter:
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
        wish = StreamFilter(frozenset(StreamKind(kind) for kind in kinds.split(",")), site, machine)
        machines = await run_in_threadpool(_asked, parts, wish)
        wake = Wake()
        subscription = parts.streams.subscribe_for_user(wish, wake)
        return EventStream(_told(parts, subscription, machines, wake), subscription.close)

    return routes


def _asked(parts: "AppServices", wish: StreamFilter) -> list[Machine]:
    """Return the machines that a wish is about, or say in a sentence what is wrong with it."""
    if wish.machine is not None:
        if wish.site is None:
            raise InputRejected("A machine is named together with its site; give site too.")
        known = parts.machines.get(MachineId(wish.site, wish.machine))
        known.require_active()
        return [known]
    machines = [one for one in parts.machines.all() if wish.matches(one.id)]
    if wish.site is not None and not machines:
        raise NotFound(f"There is no machine at the site {wish.site}.")
    return machines


async def _told(
    parts: "AppServices", subscription: Subscription, machines: list[Machine], wake: Wake
) -> AsyncIterator[bytes]:
    yield _BEGINNING
    if StreamKind.FORECAST in subscription.filter.kinds:
        for first in range(0, len(machines), _AT_ONCE):
            yield await run_in_threadpool(_present, parts, machines[first : first + _AT_ONCE])
    while not parts.streams.closed:
        if not await wake.within(parts.streams.ping_interval_s):
            yield b": ping\n\n"
            continue
        if not parts.streams.closed:
            await asyncio.sleep(_GATHER)
        missed, alarms, forecasts = subscription.take()
        told = [_event("missed", Missed(count=missed).model_dump_json().encode())] if missed else []
        if any(alarm.encoded is None for alarm in alarms):
            await run_in_threadpool(_put_into_words, parts, alarms)
        told += [_event("alarm", alarm.encoded) for alarm in alarms if alarm.encoded]
        told += [_event("forecast", encoded) for encoded in forecasts]
        yield b"".join(told)


def _present(parts: "AppServices", machines: list[Machine]) -> bytes:
    """Return the machines' present forecasts; none while there is no model, and the stream waits for one."""
    try:
        return b"".join(_event("forecast", newest.encoded) for newest in parts.newest.get_or_make(machines))
    except Unavailable:
        return b""


def _put_into_words(parts: "AppServices", alarms: Sequence[AlarmEvent]) -> None:
    """Encode what nobody has yet: once, whoever listens, and not in the thread that stores alarms."""
    entries: dict[int, CatalogueEntry] = {}
    with suppress(Unavailable):
        entries = parts.catalogue.entries()
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
