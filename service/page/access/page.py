"""The access page: users, API keys, MQTT credentials and the audit log; for admins."""

from collections.abc import Callable

from nicegui import html, ui

from alarmcast import AlarmcastError
from service.page.access.api_keys import ApiKeys
from service.page.access.audit import AuditLog
from service.page.access.machines import MachineCredentials
from service.page.access.role_fields import SiteChoices
from service.page.access.users import Users
from service.page.components.actions import ActionRunner
from service.page.components.blocks import empty_state
from service.page.layout import PageContext, layout
from service.page.texts import text
from wire.enums import Role

_REFRESH_S = 10.0


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
        _AccessPage(context)
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


class _AccessPage:
    """One open page; refreshed now and then and after every action."""

    def __init__(self, context: PageContext) -> None:
        self._context, self._sites = context, SiteChoices(context.me)
        self._error = html.p().classes("ac-bad").props('role="status"')
        self._error.set_visibility(False)
        actions = ActionRunner(self._changed)
        draw: dict[str, Callable[[], Users | ApiKeys | MachineCredentials | AuditLog]] = {
            "users": lambda: Users(context, self._sites, actions),
            "keys": lambda: ApiKeys(context, self._sites, actions),
            "machines": lambda: MachineCredentials(context, actions),
            "audit": lambda: AuditLog(context),
        }
        self._parts = []
        for anchor in _parts(context):
            with html.div(id=anchor).classes("ac-anchor"):
                self._parts.append(draw[anchor]())
        ui.timer(_REFRESH_S, self._refresh)

    async def _refresh(self) -> None:
        try:
            fleet = await self._context.cache.get_or_fetch("machines", self._context.client.machines.list)
            self._sites.known = frozenset(one.site for one in fleet.machines)
            for part in self._parts:
                await part.refresh()
        except AlarmcastError as error:
            self._show_error(text("access.not_up_to_date", error=error))
        else:
            self._show_error("")

    async def _changed(self) -> None:
        self._context.cache.invalidate()
        await self._refresh()

    def _show_error(self, message: str) -> None:
        self._error.text = message
        self._error.set_visibility(bool(message))
