"""The principal of a request: its name, role and sites."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from service.errors import Forbidden
from wire.enums import PrincipalKind, Role
from wire.rest.auth import Me

Sites = frozenset[str] | None  # None is every site, also those that are yet to come


@dataclass(frozen=True)
class Principal:
    """An authenticated user, API key or process; ``id`` is that of the session or API key."""

    name: str
    role: Role
    sites: Sites
    kind: PrincipalKind
    id: int | None = None
    user: int | None = None
    must_change: bool = False  # a temporary password, which must be changed first

    def view(self) -> Me:
        sites = None if self.sites is None else sorted(self.sites)
        return Me(name=self.name, role=self.role, sites=sites, kind=self.kind, must_change=self.must_change)

    def may(self, least: Role) -> bool:
        return self.role.covers(least)

    def can_see(self, site: str) -> bool:
        return self.sites is None or site in self.sites

    @property
    def is_own(self) -> bool:
        """Whether it is the service itself or the local admin, who have no rate limit."""
        return self.kind in (PrincipalKind.LOCAL, PrincipalKind.SYSTEM)

    @property
    def is_everywhere(self) -> bool:
        """Whether all sites are allowed."""
        return self.sites is None


@dataclass(frozen=True)
class RequestContext:
    """The current request: principal, client address, and plant time."""

    principal: Principal | None  # None is anonymous
    origin: str | None
    at: datetime


# Set by the middleware, and read where results are filtered by site and changes are audited, so that neither
# can be forgotten in between.
_current: ContextVar[RequestContext | None] = ContextVar("current_request", default=None)


@contextmanager
def request_context(context: RequestContext) -> Iterator[None]:
    """Make this the current request."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def current_request() -> RequestContext | None:
    """Return the current request; None where the service acts by itself."""
    return _current.get()


def current_user() -> Principal | None:
    """Return the principal of the current request, if it has one."""
    request = _current.get()
    return request.principal if request else None


def current_sites() -> Sites:
    """Return the sites of the current request; an empty set without a principal."""
    principal = current_user()
    return principal.sites if principal else frozenset()


def can_see(site: str) -> bool:
    """Return whether the current request may see a site."""
    principal = current_user()
    return principal is not None and principal.can_see(site)


def require_site(site: str | None) -> None:
    """Raise :class:`Forbidden` unless the current request may act for a site, or with None for all sites."""
    sites = current_sites()
    if sites is None or site in sites:
        return
    own = ", ".join(sorted(sites)) or "no site"
    what = "This concerns all sites" if site is None else f"You have no access to the site {site}"
    raise Forbidden(f"{what}, and your sites are: {own}. Ask an admin of all sites.")


def is_subset(wanted: Sites, own: Sites) -> bool:
    """Return whether ``own`` contains all ``wanted`` sites."""
    return own is None or (wanted is not None and wanted <= own)
