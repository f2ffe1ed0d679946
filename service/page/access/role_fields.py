"""Roles and sites: how they are read in a table, and how they are asked for in a dialog."""

from collections.abc import Iterable
from dataclasses import dataclass

from service.page.components.confirm_dialog import Field
from service.page.components.data_table import Cell
from wire.enums import Role
from wire.rest.auth import Me

_ROLES = {
    Role.VIEWER: "viewer: looks",
    Role.OPERATOR: "operator: acknowledges, shelves, plans maintenance, replays",
    Role.ADMIN: "admin: changes what there is, and who may",
}


@dataclass
class Places:
    """The sites that the visitor can give to others."""

    me: Me
    known: frozenset[str] = frozenset()  # where machines are

    def field(self, given: list[str] | None) -> Field:
        """Ask for sites, beginning with those that are given; every site only of those who have every site."""
        own = self.known if self.me.sites is None else frozenset(self.me.sites)
        options = sorted(own | set(given or ()))
        return Field("sites", "Sites", kind="sites", value=given, options=options, every=self.me.sites is None)

    @property
    def usual(self) -> list[str] | None:
        """What a newcomer is offered: one's own site if there is but one, or none, so that somebody chooses."""
        if self.me.sites is None:
            return [] if self.known else None
        return self.me.sites if len(self.me.sites) == 1 else []


def role_field(role: Role) -> Field:
    """Ask for a role."""
    options = [{"value": one.value, "text": words} for one, words in _ROLES.items()]
    return Field("role", "Role", kind="choice", value=role.value, options=options)


def sites_cell(sites: Iterable[str] | None) -> Cell:
    """Return a cell that names sites."""
    return "all sites" if sites is None else ", ".join(sites)
