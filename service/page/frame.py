"""The frame around every page: where one is, where one can go, what time it is in the plant."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from nicegui import html, ui

from alarmcast import AlarmcastError, AsyncClient
from service.page.kept import Kept
from service.page.live import Live
from service.page.parts.elements import PlantClock, ThemeSwitch
from service.page.pulse import Pulse

_PAGES = (("/", "Fleet"), ("/alarms", "Alarms"), ("/learning", "Learning"), ("/health", "Health"))


@dataclass(frozen=True)
class Told:
    """What every page is given: the API to ask, and what is asked once for all pages that are open."""

    client: AsyncClient
    live: Live
    pulse: Pulse
    kept: Kept


@contextmanager
def frame(told: Told, title: str, *, path: str, look: str | None = None) -> Iterator[None]:
    """Draw the frame; what is drawn inside ``with`` is the page's own, as is the style sheet named ``look``."""
    ui.page_title(f"{title} · Alarmcast")
    for sheet in ("alarmcast", look) if look else ("alarmcast",):
        ui.add_head_html(f'<link rel="stylesheet" href="/static/{sheet}.css">')
    with html.header().classes("ac-bar"):
        html.a("Skip to the page", href="#main").classes("ac-skip")
        with html.a(href="/").classes("ac-brand"):
            html.img(src="/static/icon.svg", alt="")
            html.span("Alarmcast")
        with html.nav().classes("ac-nav").props('aria-label="Pages"'):
            for address, name in _PAGES:
                link = html.a(name, href=address)
                if address == path:
                    link.props('aria-current="page"')
        with html.div().classes("ac-told"):
            clock = PlantClock()
            ThemeSwitch()
    follow(told, clock.tell)
    with html.main(id="main").classes("ac-main"):
        yield


def follow(told: Told, watcher: Callable[[dict[str, Any]], None]) -> None:
    """Let ``watcher`` know of every change of the fleet for as long as this page is open."""
    key = uuid4()
    client = ui.context.client

    def within_the_page(changed: dict[str, Any]) -> None:
        with client:
            watcher(changed)

    client.on_connect(lambda: told.live.watch(key, within_the_page))
    client.on_disconnect(lambda: told.live.unwatch(key))


@contextmanager
def complaining() -> Iterator[None]:
    """Show what the API refused, in its own words, instead of breaking the page."""
    try:
        yield
    except AlarmcastError as error:
        ui.notify(str(error), type="negative", multi_line=True, close_button="Close", timeout=0)
