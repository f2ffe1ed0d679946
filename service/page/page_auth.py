"""Authentication of pages, and the data shared by users with the same role and sites."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse

from alarmcast import AsyncClient, NotSignedIn
from service.page.changes import PageChanges, RefreshLoop, Topic
from service.page.feeds import FleetFeed, StatusHistory
from service.page.layout import PageContext
from service.page.request_cache import RequestCache
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE, Me

SIGN_IN, PASSWORD = "/sign-in", "/password"
Sites = frozenset[str] | None  # None is all sites
_FREQUENT = {Topic.EVENTS, Topic.FORECASTS, Topic.JOBS}  # cached responses may be some seconds old


def client_address(request: Request) -> str:
    """Return the address a request comes from."""
    return request.client.host if request.client else "?"


class SharedData:
    """Feeds and cache shared by all users of one role and the same sites."""

    def __init__(self, client: AsyncClient, changes: PageChanges) -> None:
        self.fleet, self.status = FleetFeed(client, changes), StatusHistory(client, changes)
        self.cache = RequestCache()
        changes.watch(self._on_change)
        self.status.loop.start()

    def stop(self) -> None:
        """Stop the feeds."""
        self.fleet.loop.stop()
        self.status.loop.stop()

    def _on_change(self, topics: AbstractSet[Topic]) -> None:
        if topics - _FREQUENT:
            self.cache.invalidate()


@dataclass
class PageAuth:
    """Authenticates users of pages by the cookie of their session.

    ``user_client`` returns an API client with the token and address of a user, for the audit log and rate limits;
    ``shared_client`` one for shared data, restricted to their sites.
    """

    user_client: Callable[[str, str], AsyncClient]
    shared_client: Callable[[Sites], AsyncClient]
    changes: PageChanges
    _shared: dict[tuple[Role, Sites], SharedData] = field(default_factory=dict)

    async def context_for(self, request: Request) -> PageContext | RedirectResponse:
        """Return the context of a page, or a redirect to sign in or to change the password."""
        identity = await self.identify(request)
        if identity is None:
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{SIGN_IN}?next={quote(wanted, safe='')}", 303)
        client, me = identity
        if me.must_change:
            return RedirectResponse(PASSWORD, 303)
        shared = self._shared_with(me.role, None if me.sites is None else frozenset(me.sites))
        await shared.fleet.prepare()
        return PageContext(client, shared.fleet, shared.status, shared.cache, me, RefreshLoop(self.changes))

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
        """Stop all refreshes."""
        self.changes.stop()
        for shared in self._shared.values():
            shared.stop()

    def _shared_with(self, role: Role, sites: Sites) -> SharedData:
        self.changes.start()
        if (role, sites) not in self._shared:
            self._shared[role, sites] = SharedData(self.shared_client(sites), self.changes)
        return self._shared[role, sites]
