"""A store of rows that belong to sites."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement

from service.database.engine import Database
from service.http.principal import Sites, require_site


def all_sites() -> Sites:
    """Return None: every site is visible."""
    return None


@dataclass(frozen=True)
class SiteScopedStore:
    """A store that reads and changes only rows of the sites that ``sites()`` returns.

    Background work sees every site. For requests, ``sites`` is ``current_sites``, so that no route can forget
    the filter.
    """

    database: Database
    sites: Callable[[], Sites] = all_sites

    def can_see(self, site: str | None) -> bool:
        """Return whether a site, or with None every site, is visible."""
        sites = self.sites()
        return sites is None or site in sites

    def require(self, site: str | None) -> None:
        """Raise :class:`Forbidden` unless a site, or with None every site, is visible."""
        if not self.can_see(site):
            require_site(site)

    def in_sites(self, column: ColumnElement[str]) -> list[ColumnElement[bool]]:
        """Return the condition that restricts a query to the visible sites."""
        sites = self.sites()
        return [] if sites is None else [column.in_(sites)]
