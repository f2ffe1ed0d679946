"""Who asks: by what name, in which role, for which sites, and from where."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from service.errors import Forbidden
from wire.enums import PrincipalKind, Role

Sites = frozenset[str] | None  # None is every site, also those that are yet to come


@dataclass(frozen=True)
class Principal:
    """Somebody whom the service knows; ``number`` is the row of their session or key."""

    name: str
    role: Role
    sites: Sites
    kind: PrincipalKind
    id: int | None = None
    user: int | None = None
    must_change: bool = False  # a password that was told once and may do nothing but be changed

    def may(self, least: Role) -> bool:
        """Say whether the role is enough."""
        return self.role.covers(least)

    def can_see(self, site: str) -> bool:
        """Say whether a site is theirs."""
        return self.sites is None or site in self.sites

    @property
    def is_own(self) -> bool:
        """Whether it is the service itself, or whoever reads its folder; what these ask is not limited."""
        return self.kind in (PrincipalKind.LOCAL, PrincipalKind.SYSTEM)

    @property
    def is_everywhere(self) -> bool:
        """Whether every site is theirs."""
        return self.sites is None


@dataclass(frozen=True)
class RequestContext:
    """A request under way: who asks, from which address, and when by the plant's clock."""

    principal: Principal | None  # None is a stranger
    origin: str | None
    at: datetime


# Set where a request comes in and read where its answer is narrowed and its deed is written down, so that
# neither can be forgotten on the way between.
_asking: ContextVar[RequestContext | None] = ContextVar("asking", default=None)


@contextmanager
def request_context(asking: RequestContext) -> Iterator[None]:
    """Let whatever happens inside be on behalf of this request."""
    token = _asking.set(asking)
    try:
        yield
    finally:
        _asking.reset(token)


def current_request() -> RequestContext | None:
    """Return the request under way; None where the service acts by itself."""
    return _asking.get()


def current_user() -> Principal | None:
    """Return who asks, None for a stranger and where nobody does."""
    under_way = _asking.get()
    return under_way.principal if under_way else None


def current_sites() -> Sites:
    """Return the sites of whoever asks; none at all for a stranger, and where nobody asks."""
    principal = current_user()
    return principal.sites if principal else frozenset()


def can_see(site: str) -> bool:
    """Say whether a site belongs to whoever asks."""
    principal = current_user()
    return principal is not None and principal.can_see(site)


def require_site(site: str | None) -> None:
    """Raise :class:`Forbidden` unless a site, or with None every site, belongs to whoever asks."""
    sites = current_sites()
    if sites is None or site in sites:
        return
    own = ", ".join(sorted(sites)) or "no site"
    what = "This concerns every site" if site is None else f"The site {site} is not yours"
    raise Forbidden(f"{what}, and you act for {own} only. Ask an admin of all sites.")


def is_subset(wanted: Sites, own: Sites) -> bool:
    """Say whether somebody with ``own`` sites has all of the wanted."""
    return own is None or (wanted is not None and wanted <= own)
