"""The access page: users, API keys, MQTT credentials and the audit log; for admins."""

from collections.abc import Callable

from nicegui import html

from service.page.access.api_keys import ApiKeys
from service.page.access.audit import AuditLog
from service.page.access.machines import MachineCredentials
from service.page.access.role_fields import SiteChoices
from service.page.access.users import Users
from service.page.changes import Topic
from service.page.components.actions import ActionRunner
from service.page.components.blocks import empty_state
from service.page.layout import PageContext, layout
from service.page.texts import text
from wire.enums import Role


async def access(context: PageContext) -> bool:
    """Draw the page; return whether the user may see it."""
    if not context.may(Role.ADMIN):
        _denied(context)
        return False
    with layout(context, text("access.title"), path="/access", stylesheet="access"):
        with html.div().classes("ac-head"):
            html.h1(text("access.heading"))
            sites = text("access.sites.all") if context.me.sites is None else ", ".join(context.me.sites)
            html.span(sites).classes("quiet")
            with html.nav(**{"aria-label": text("access.jump")}).classes("ac-jump small"):
                for anchor, name in _parts(context).items():
                    html.a(name, href=f"#{anchor}")
        _draw(context)
    return True


def _parts(context: PageContext) -> dict[str, str]:
    """Return the titles of the visible parts by anchor; the audit log needs access to all sites."""
    parts = {
        "users": text("access.users.title"),
        "keys": text("access.keys.title"),
        "machines": text("access.machines.title"),
    }
    return parts | ({"audit": text("access.audit.title")} if context.may(Role.ADMIN, everywhere=True) else {})


def _denied(context: PageContext) -> None:
    with layout(context, text("access.title"), path="/access"):
        empty_state(text("access.denied.title"), text("access.denied.help", role=context.me.role.value))
        with html.div().classes("ac-tools ac-middle"):
            html.a(text("access.denied.fleet"), href="/").classes("ac-button")


def _draw(context: PageContext) -> None:
    sites, actions = SiteChoices(context.me), ActionRunner()
    draw: dict[str, Callable[[], Users | ApiKeys | MachineCredentials | AuditLog]] = {
        "users": lambda: Users(context, sites, actions),
        "keys": lambda: ApiKeys(context, sites, actions),
        "machines": lambda: MachineCredentials(context, actions),
        "audit": lambda: AuditLog(context),
    }

    async def refresh_sites() -> None:
        fleet = await context.cache.get_or_fetch("machines", context.client.machines.list)
        sites.known = frozenset(one.site for one in fleet.machines)

    context.parts.add(refresh_sites, Topic.RESOURCES)
    for anchor in _parts(context):
        with html.div(id=anchor).classes("ac-anchor"):
            context.parts.add(draw[anchor]().refresh, Topic.RESOURCES, Topic.PERMISSIONS)
