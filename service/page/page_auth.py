"""Authentication of pages, and the pollers shared by users with the same role and sites."""

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
Sites = frozenset[str] | None  # None is all sites


def client_address(request: Request) -> str:
    """Return the address a request comes from."""
    return request.client.host if request.client else "?"


@dataclass
class SharedPollers:
    """Pollers and cache shared by all users of one role and the same sites."""

    fleet: FleetPoller
    status: StatusPoller
    cache: RequestCache = field(default_factory=RequestCache)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Start polling."""
        self._tasks = [asyncio.create_task(self.fleet.run()), asyncio.create_task(self.status.run())]

    def stop(self) -> None:
        """Stop polling."""
        for task in self._tasks:
            task.cancel()


@dataclass
class PageAuth:
    """Authenticates users of pages by the cookie of their session.

    ``user_client`` returns an API client with the token and address of a user, for the audit log and rate limits;
    ``poller_client`` one for shared pollers, restricted to their sites.
    """

    user_client: Callable[[str, str], AsyncClient]
    poller_client: Callable[[Sites], AsyncClient]
    _pollers: dict[tuple[Role, Sites], SharedPollers] = field(default_factory=dict)

    async def context_for(self, request: Request) -> PageContext | RedirectResponse:
        """Return the context of a page, or a redirect to sign in or to change the password."""
        identity = await self.identify(request)
        if identity is None:
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{SIGN_IN}?next={quote(wanted, safe='')}", 303)
        client, me = identity
        if me.must_change:
            return RedirectResponse(PASSWORD, 303)
        pollers = self._pollers_for(me.role, None if me.sites is None else frozenset(me.sites))
        await pollers.fleet.prepare()
        return PageContext(client, pollers.fleet, pollers.status, pollers.cache, me)

    async def identify(self, request: Request) -> tuple[AsyncClient, Me] | None:
        """Return the API client of the user and who they are, or None without a session."""
        token = request.cookies.get(SESSION_COOKIE)
        if not token:
            return None
        client = self.user_client(token, client_address(request))
        try:
            return client, await client.session.me()
        except NotSignedIn:
            return None

    def close(self) -> None:
        """Stop all pollers."""
        for pollers in self._pollers.values():
            pollers.stop()

    def _pollers_for(self, role: Role, sites: Sites) -> SharedPollers:
        pollers = self._pollers.get((role, sites))
        if pollers is None:
            client = self.poller_client(sites)
            pollers = self._pollers[role, sites] = SharedPollers(FleetPoller(client), StatusPoller(client))
            pollers.start()
        return pollers
