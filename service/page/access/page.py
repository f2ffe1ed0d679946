"""The access page: who may come in, what they may do, and what was changed; for admins."""

from collections.abc import Callable

from nicegui import html, ui

from alarmcast import AlarmcastError
from service.page.access.actions import ActionRunner
from service.page.access.api_keys import Programs
from service.page.access.audit import Changes
from service.page.access.machines import Machines
from service.page.access.role_fields import Places
from service.page.access.users import People
from service.page.components.blocks import empty_state
from service.page.layout import PageContext, layout
from wire.enums import Role

_RENEWED = 10.0  # seconds


async def access(told: PageContext) -> bool:
    """Draw the page; return whether the visitor may see it."""
    if not told.may(Role.ADMIN):
        _denied(told)
        return False
    with layout(told, "Access", path="/access", stylesheet="access"):
        with html.div().classes("ac-head"):
            html.h1("Who may come in, and what they may do")
            of = "all sites" if told.me.sites is None else ", ".join(told.me.sites)
            html.span(f"as an admin of {of} sees it").classes("quiet")
            with html.nav().classes("ac-jump small").props('aria-label="On this page"'):
                for anchor, name in _parts(told).items():
                    html.a(name, href=f"#{anchor}")
        _Page(told)
    return True


def _parts(told: PageContext) -> dict[str, str]:
    """Return the anchors of what this visitor is shown; the book is of every site, and for those of every site."""
    parts = {"people": "People", "keys": "Keys", "machines": "Machines"}
    return parts | ({"changes": "What was changed"} if told.may(Role.ADMIN, everywhere=True) else {})


def _denied(told: PageContext) -> None:
    with layout(told, "Access", path="/access"):
        empty_state(
            "Who may come in is for admins to see",
            f"You are signed in as {told.me.role.value}; ask an admin where a person or a program needs access.",
        )
        with html.div().classes("ac-tools ac-middle"):
            html.a("All machines", href="/").classes("ac-button")


class _Page:
    """One open page: its parts, renewed now and then and after every deed."""

    def __init__(self, told: PageContext) -> None:
        self._told, self._places = told, Places(told.me)
        self._trouble = html.p().classes("ac-bad").props('role="status"')
        self._trouble.set_visibility(False)
        desk = ActionRunner(self._changed)
        draw: dict[str, Callable[[], People | Programs | Machines | Changes]] = {
            "people": lambda: People(told, self._places, desk),
            "keys": lambda: Programs(told, self._places, desk),
            "machines": lambda: Machines(told, desk),
            "changes": lambda: Changes(told),
        }
        self._parts = []
        for anchor in _parts(told):
            with html.div(id=anchor).classes("ac-anchor"):
                self._parts.append(draw[anchor]())
        ui.timer(_RENEWED, self._renew)

    async def _renew(self) -> None:
        try:
            fleet = await self._told.cache.get_or_fetch("machines", self._told.client.machines.list)
            self._places.known = frozenset(one.site for one in fleet.machines)
            for part in self._parts:
                await part.renew()
        except AlarmcastError as error:
            self._complain(f"This page is not up to date: {error}")
        else:
            self._complain("")

    async def _changed(self) -> None:
        self._told.cache.invalidate()
        await self._renew()

    def _complain(self, words: str) -> None:
        self._trouble.text = words
        self._trouble.set_visibility(bool(words))
