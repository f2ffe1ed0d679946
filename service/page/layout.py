"""The frame around every page: navigation, plant time, user, main content."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nicegui import html, ui

from alarmcast import AlarmcastError, AsyncClient, NotSignedIn
from service.page.changes import RefreshLoop, Topic
from service.page.components.elements import PlantClock, ThemeSwitch, UserMenu
from service.page.components.refreshable import Refreshable
from service.page.feeds import FleetFeed, StatusHistory
from service.page.request_cache import RequestCache
from service.page.session_check import CHECK_INTERVAL_S, SessionMonitor, redirect_to_login
from service.page.texts import script_url, text
from wire.enums import Role
from wire.rest.auth import Me

log = logging.getLogger(__name__)
_PAGES = (
    ("/", "fleet"),
    ("/alarms", "alarms"),
    ("/notifications", "notifications"),
    ("/learning", "learning"),
    ("/health", "health"),
)
_ADMIN_PAGES = (("/access", "access"),)


@dataclass(frozen=True)
class PageContext:
    """What every page is given: the API as its user, and data shared by all open pages."""

    client: AsyncClient
    fleet: FleetFeed
    status: StatusHistory
    cache: RequestCache
    me: Me
    parts: RefreshLoop  # of this page

    @property
    def zone(self) -> str:
        """The time zone of most machines that the user sees."""
        return self.fleet.zone

    def may(self, role: Role, *, everywhere: bool = False) -> bool:
        """Return whether the user has this role, for all sites if ``everywhere``.

        Decides what is drawn; the API decides what is allowed.
        """
        return self.me.role.covers(role) and (not everywhere or self.me.sites is None)


@contextmanager
def layout(
    context: PageContext, title: str, *, path: str, stylesheet: str | None = None, zone: str | None = None
) -> Iterator[None]:
    """Draw the frame around the main content.

    ``zone`` is the time zone of the page, that of most machines unless given.
    """
    _head(title, "alarmcast", stylesheet)
    with html.header().classes("ac-bar"):
        html.a(text("common.skip"), href="#main").classes("ac-skip")
        with html.a(href="/").classes("ac-brand"):
            html.img(src="/static/icon.svg", alt="")
            html.span(text("common.product"))
        with html.nav().classes("ac-nav").props(f'aria-label="{text("common.nav")}"'):
            for address, name in _PAGES + (_ADMIN_PAGES if context.may(Role.ADMIN) else ()):
                link = html.a(text(f"common.nav.{name}"), href=address)
                if address == path:
                    link.props('aria-current="page"')
        with html.div().classes("ac-bar-end"):
            clock = PlantClock()
            UserMenu(context.me)
            ThemeSwitch()
    context.fleet.subscribe(lambda overview: clock.show(overview["plant_time"], zone or context.zone))
    session = RefreshLoop(context.parts.changes)  # of its own: no slow part of the page delays it
    session.add(SessionMonitor(context.client, context.me).check, Topic.PERMISSIONS, interval_s=CHECK_INTERVAL_S)
    session.run_while_open(ui.context.client)
    with html.main(id="main").classes("ac-main"):
        context.parts.on_error = _refresh_error()
        context.parts.run_while_open(ui.context.client)
        yield


def _refresh_error() -> Callable[[AlarmcastError | None], None]:
    """Draw the place where a page says that it is not up to date; return the function that shows an error."""
    place = Refreshable(_error_message)

    def show(error: AlarmcastError | None) -> None:
        if isinstance(error, NotSignedIn):
            redirect_to_login()
        place.show(text("common.not_up_to_date", error=error) if error else "")

    return show


def _error_message(message: str) -> None:
    if message:
        html.p(message, role="alert").classes("ac-bad")


@contextmanager
def login_layout(title: str) -> Iterator[None]:
    """Draw the frame of a page for which no sign-in is needed."""
    _head(title, "alarmcast", "sign_in")
    with html.header().classes("ac-bar"):
        with html.span().classes("ac-brand"):
            html.img(src="/static/icon.svg", alt="")
            html.span(text("common.product"))
        with html.div().classes("ac-bar-end"):
            ThemeSwitch()
    with html.main(id="main").classes("ac-main ac-centered"):
        yield


@contextmanager
def show_api_errors(show: Callable[[str], None] | None = None) -> Iterator[None]:
    """Show the detail of an API error with ``show``, or as a notification; an invalid date is shown as such."""
    show = show or _notify
    try:
        yield
    except NotSignedIn:
        redirect_to_login()
    except AlarmcastError as error:
        show(str(error))
    except (ValueError, OverflowError):
        log.info("invalid input on a page", exc_info=True)
        show(text("common.invalid_date"))


def _notify(message: str) -> None:
    ui.notify(message, type="negative", multi_line=True, close_button=text("common.close"), timeout=0)


def _head(title: str, *sheets: str | None) -> None:
    ui.page_title(text("common.page_title", title=title))
    ui.add_head_html(f'<script src="{script_url()}"></script>')
    for sheet in filter(None, sheets):
        ui.add_head_html(f'<link rel="stylesheet" href="/static/{sheet}.css">')
