"""The frame around every page: where one is, where one can go, what time it is in the plant."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from nicegui import html, ui

from alarmcast import AlarmcastError, AsyncClient, NotSignedIn
from service.page.components.elements import PlantClock, ThemeSwitch, Visitor
from service.page.fleet_poller import FleetPoller
from service.page.request_cache import RequestCache
from service.page.session_check import CHECK_INTERVAL_S, SessionMonitor, redirect_to_login
from service.page.status_poller import StatusPoller
from service.page.texts import text, texts
from wire.enums import Role
from wire.rest.auth import Me

log = logging.getLogger(__name__)
_PAGES = (
    ("/", "Fleet"),
    ("/alarms", "Alarms"),
    ("/notifications", "Notifications"),
    ("/learning", "Learning"),
    ("/health", "Health"),
)
_OF_ADMINS = (("/access", "Access"),)


@dataclass(frozen=True)
class PageContext:
    """What every page is given: the API to ask, and what is asked once for all pages that are open."""

    client: AsyncClient
    live: FleetPoller
    pulse: StatusPoller
    kept: RequestCache
    me: Me

    @property
    def zone(self) -> str:
        """The time zone for what is no single machine's: that of most machines that the visitor sees."""
        return self.live.zone

    def may(self, role: Role, *, everywhere: bool = False) -> bool:
        """Say whether the visitor may do what takes this role, of the whole fleet if ``everywhere``.

        For what is drawn only; what is done is decided by the API.
        """
        return self.me.role.covers(role) and (not everywhere or self.me.sites is None)


@contextmanager
def layout(
    told: PageContext, title: str, *, path: str, look: str | None = None, zone: str | None = None
) -> Iterator[None]:
    """Draw the frame; what is drawn inside ``with`` is the page's own, as is the style sheet named ``look``.

    ``zone`` is the time zone that the page is read in, that of most machines unless given.
    """
    _head(title, "alarmcast", look)
    with html.header().classes("ac-bar"):
        html.a(text("common.skip"), href="#main").classes("ac-skip")
        with html.a(href="/").classes("ac-brand"):
            html.img(src="/static/icon.svg", alt="")
            html.span("Alarmcast")
        with html.nav().classes("ac-nav").props('aria-label="Pages"'):
            for address, name in _PAGES + (_OF_ADMINS if told.may(Role.ADMIN) else ()):
                link = html.a(name, href=address)
                if address == path:
                    link.props('aria-current="page"')
        with html.div().classes("ac-told"):
            clock = PlantClock()
            Visitor(told.me)
            ThemeSwitch()
    subscribe(told, lambda overview: clock.tell(overview, zone or told.zone))
    ui.timer(CHECK_INTERVAL_S, SessionMonitor(told.client, told.me).check, immediate=False)
    with html.main(id="main").classes("ac-main"):
        yield


@contextmanager
def login_layout(title: str) -> Iterator[None]:
    """Draw the frame of a page for those who are not let in yet."""
    _head(title, "alarmcast", "sign_in")
    with html.header().classes("ac-bar"):
        with html.span().classes("ac-brand"):
            html.img(src="/static/icon.svg", alt="")
            html.span("Alarmcast")
        with html.div().classes("ac-told"):
            ThemeSwitch()
    with html.main(id="main").classes("ac-main ac-alone"):
        yield


def subscribe(told: PageContext, watcher: Callable[[dict[str, Any]], None]) -> None:
    """Let ``watcher`` know of every change of the fleet for as long as this page is open."""
    key = uuid4()
    client = ui.context.client

    def within_the_page(changed: dict[str, Any]) -> None:
        with client:
            watcher(changed)

    client.on_connect(lambda: told.live.subscribe(key, within_the_page))
    client.on_disconnect(lambda: told.live.unsubscribe(key))
    client.on_delete(lambda: told.live.unsubscribe(key))  # which may be while it is connected


@contextmanager
def show_api_errors(say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Show what the API refused, in its own words, instead of breaking the page; where ``say`` shows it, if given.

    A date that no calendar has is refused here, before anybody is asked.
    """
    say = say or _notify
    try:
        yield
    except NotSignedIn:
        redirect_to_login()
    except AlarmcastError as error:
        say(str(error))
    except (ValueError, OverflowError):
        log.info("a page could not use what was typed", exc_info=True)
        say("That is no moment we can use; write a day between 2000 and 2099.")


def _notify(sentence: str) -> None:
    ui.notify(sentence, type="negative", multi_line=True, close_button="Close", timeout=0)


def _head(title: str, *sheets: str | None) -> None:
    ui.page_title(f"{title} · Alarmcast")
    data = json.dumps(texts()).replace("<", "\\u003c")  # read by the components' text()
    ui.add_head_html(f'<script type="application/json" id="alarmcast-texts">{data}</script>')
    for sheet in filter(None, sheets):
        ui.add_head_html(f'<link rel="stylesheet" href="/static/{sheet}.css">')
