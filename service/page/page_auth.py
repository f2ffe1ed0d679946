"""At the door of every page: who visits, what they may, and what those share who may see the same."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse

from alarmcast import AsyncClient, NotSignedIn
from service.page.fleet_poller import FleetPoller
from service.page.layout import PageContext
from service.page.request_cache import RequestCache
from service.page.status_poller import StatusPoller
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE, Me

SIGN_IN, PASSWORD = "/sign-in", "/password"
Sites = frozenset[str] | None  # None is every site


def address_of(request: Request) -> str:
    """Return where a request comes from."""
    return request.client.host if request.client else "?"


@dataclass
class SharedPollers:
    """What is asked once for all visitors of one role and the same sites: they have the same right to hear it."""

    live: FleetPoller
    pulse: StatusPoller
    kept: RequestCache = field(default_factory=RequestCache)
    _ears: list[asyncio.Task[None]] = field(default_factory=list)

    def open(self) -> None:
        """Begin to listen."""
        self._ears = [asyncio.create_task(self.live.run()), asyncio.create_task(self.pulse.run())]

    def close(self) -> None:
        """Listen no more."""
        for ear in self._ears:
            ear.cancel()


@dataclass
class PageAuth:
    """Lets visitors in by their session's cookie.

    ``client_of`` is how a visitor asks, with their own token and from their own address, which is what the book
    of changes names and what their limits go by; ``client_for`` how a room does, in the service's name but with
    no more rights than its sites give.
    """

    client_of: Callable[[str, str], AsyncClient]
    client_for: Callable[[Sites], AsyncClient]
    _rooms: dict[tuple[Role, Sites], SharedPollers] = field(default_factory=dict)

    async def context_for(self, request: Request) -> PageContext | RedirectResponse:
        """Return what a visitor's page is given, or the way to where they must go first."""
        known = await self.identify(request)
        if known is None:
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{SIGN_IN}?next={quote(wanted, safe='')}", 303)
        client, me = known
        if me.must_change:
            return RedirectResponse(PASSWORD, 303)
        room = self._room(me.role, None if me.sites is None else frozenset(me.sites))
        await room.live.prepare()
        return PageContext(client, room.live, room.pulse, room.kept, me)

    async def identify(self, request: Request) -> tuple[AsyncClient, Me] | None:
        """Return who visits and how they ask, or None for a stranger."""
        token = request.cookies.get(SESSION_COOKIE)
        if not token:
            return None
        client = self.client_of(token, address_of(request))
        try:
            return client, await client.session.me()
        except NotSignedIn:
            return None

    def close(self) -> None:
        """Close every room."""
        for room in self._rooms.values():
            room.close()

    def _room(self, role: Role, sites: Sites) -> SharedPollers:
        room = self._rooms.get((role, sites))
        if room is None:
            client = self.client_for(sites)
            room = self._rooms[role, sites] = SharedPollers(FleetPoller(client), StatusPoller(client))
            room.open()
        return room
