"""Roles and sites: cells of a table and fields of a dialog."""

from collections.abc import Iterable
from dataclasses import dataclass

from service.page.components.confirm_dialog import Field
from service.page.texts import text
from wire.enums import Role
from wire.rest.auth import Me


@dataclass
class SiteChoices:
    """The sites that the user can give to others."""

    me: Me
    known: frozenset[str] = frozenset()  # sites with machines

    def field(self, given: list[str] | None) -> Field:
        """Return a field for sites; all sites are offered to users of all sites only."""
        own = self.known if self.me.sites is None else frozenset(self.me.sites)
        options = sorted(own | set(given or ()))
        return Field(
            "sites",
            text("access.sites.label"),
            kind="sites",
            value=given,
            options=options,
            every=self.me.sites is None,
        )

    @property
    def default(self) -> list[str] | None:
        """The sites of a new user or key: the only own site, or none, so that they are chosen explicitly."""
        if self.me.sites is None:
            return [] if self.known else None
        return self.me.sites if len(self.me.sites) == 1 else []


def role_field(role: Role) -> Field:
    """Return a field for a role."""
    names = {
        Role.VIEWER: text("access.role.viewer"),
        Role.OPERATOR: text("access.role.operator"),
        Role.ADMIN: text("access.role.admin"),
    }
    options = [{"value": one.value, "text": name} for one, name in names.items()]
    return Field("role", text("access.role.label"), kind="choice", value=role.value, options=options)


def sites_text(sites: Iterable[str] | None) -> str:
    """Return the names of sites."""
    return text("access.sites.all") if sites is None else ", ".join(sites)
