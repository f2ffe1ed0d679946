"""Builds the pages: routes, static files, and the door that visitors come in by."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import PlainTextResponse, RedirectResponse
from nicegui import Client, html, ui
from nicegui import app as nicegui
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from alarmcast import Unavailable
from service.page.access import access
from service.page.alarms import alarms
from service.page.components.blocks import empty_state
from service.page.dispatch import ApiOrPages, is_client_disconnect
from service.page.fleet import fleet
from service.page.health import health
from service.page.layout import PageContext, login_layout
from service.page.learning import learning
from service.page.login.page import own_path, password, sign_in
from service.page.machine.page import machine
from service.page.notifications import notifications
from service.page.page_auth import PASSWORD, SIGN_IN, PageAuth, address_of
from service.page.page_memory import Collection, Undelivered
from service.page.page_rate_limit import ASSETS, PageRateLimit, Visitors
from service.page.security_headers import SecurityHeaders

_STATIC = Path(__file__).parent / "static"
Draw = Callable[[PageContext, Request], Awaitable[Response | None]]


def is_drawn(page: str) -> bool:
    """Say whether a page of this id is kept for its browser."""
    return page in Client.instances


def mount_pages(api: FastAPI, reception: PageAuth, visitors: Visitors) -> ASGIApp:
    """Return the API with the pages around it, as often and as many as visitors may have.

    Once a process: NiceGUI is one.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with api.router.lifespan_context(api):
            yield
            reception.close()

    pages, undelivered = FastAPI(openapi_url=None, lifespan=lifespan), Undelivered()
    nicegui.on_delete(Collection().count)
    nicegui.add_static_files("/static", _STATIC)
    _doors(reception, undelivered)
    _rooms(reception, undelivered)
    _wrong_doors(undelivered)
    ui.run_with(
        pages,
        title="Alarmcast",
        favicon=_STATIC / "icon.svg",
        dark=None,
        language="en-GB",
        tailwind=False,
        binding_refresh_interval=None,
        show_welcome_message=False,
    )
    return ApiOrPages(api, SecurityHeaders(PageRateLimit(pages, visitors)))


def _doors(reception: PageAuth, undelivered: Undelivered) -> None:
    """Draw the pages that strangers may see."""

    @ui.page(SIGN_IN)
    async def _sign_in(request: Request) -> Response | None:
        undelivered.add(ui.context.client, address_of(request))
        wanted = request.query_params.get("next", "/")
        if await reception.identify(request) is not None:
            return RedirectResponse(own_path(wanted), 303)
        sign_in(wanted)
        return None

    @ui.page(PASSWORD)
    async def _password(request: Request) -> Response | None:
        undelivered.add(ui.context.client, address_of(request))
        known = await reception.identify(request)
        if known is None:
            return RedirectResponse(SIGN_IN, 303)
        password(known[1].name, must=known[1].must_change)
        return None


def _wrong_doors(undelivered: Undelivered) -> None:
    """Draw what stands at addresses that lead nowhere, in place of NiceGUI's own."""

    @nicegui.exception_handler(404)
    async def _not_found(request: Request, error: Exception) -> Response:
        endpoint = request.scope.get("endpoint")
        is_page = endpoint in (None, nicegui) or request.scope.get("nicegui_page_path")
        is_file = request.url.path.startswith(ASSETS) or not is_page
        if is_file and isinstance(error, HTTPException):
            return await http_exception_handler(request, error)
        with Client(ui.page(""), request=request) as client, login_layout("No such page"):
            undelivered.add(client, address_of(request))
            empty_state("There is no such page", "Look for a slip in the address, or begin with the machines.")
            with html.div().classes("ac-tools ac-middle"):
                html.a("All machines", href="/").classes("ac-button")
        return client.build_response(request, 404)

    @nicegui.exception_handler(Unavailable)
    async def _unavailable(_request: Request, error: Unavailable) -> Response:
        headers = {} if error.retry_after is None else {"Retry-After": f"{error.retry_after:.0f}"}
        return PlainTextResponse(str(error), error.status, headers)

    complain = nicegui.exception_handlers[Exception]

    @nicegui.exception_handler(Exception)
    async def _server_error(request: Request, error: Exception) -> Response:
        if is_client_disconnect(request.scope, error):
            return Response(status_code=204)  # which nobody reads
        answer: Response = await complain(request, error)  # type: ignore[misc]  # NiceGUI's own, and it awaits
        return answer


def _for_visitors(reception: PageAuth, undelivered: Undelivered) -> Callable[[str], Callable[[Draw], None]]:
    """Return what adds a page that only visitors see who have signed in."""

    def page(address: str) -> Callable[[Draw], None]:
        def add(draw: Draw) -> None:
            async def welcomed(request: Request) -> Response | None:
                told = await reception.context_for(request)
                if isinstance(told, Response):
                    undelivered.add(ui.context.client, address_of(request))
                    return told
                undelivered.add(ui.context.client, f"user {told.me.name}")
                return await draw(told, request)

            ui.page(address)(welcomed)

        return add

    return page


def _rooms(reception: PageAuth, undelivered: Undelivered) -> None:
    """Draw the pages that only visitors see who have signed in."""
    page = _for_visitors(reception, undelivered)

    @page("/")
    async def _fleet(told: PageContext, _request: Request) -> None:
        await fleet(told)

    @page("/machines/{site}/{name}")
    async def _machine(told: PageContext, request: Request) -> Response | None:
        known = await machine(told, request.path_params["site"], request.path_params["name"])
        return None if known else ui.context.client.build_response(request, 404)

    @page("/alarms")
    async def _alarms(told: PageContext, request: Request) -> None:
        await alarms(told, request.query_params)

    @page("/notifications")
    async def _notifications(told: PageContext, _request: Request) -> None:
        await notifications(told)

    @page("/health")
    async def _health(told: PageContext, _request: Request) -> None:
        await health(told)

    @page("/access")
    async def _access(told: PageContext, request: Request) -> Response | None:
        let_in = await access(told)
        return None if let_in else ui.context.client.build_response(request, 403)

    @page("/learning")
    async def _learning(told: PageContext, request: Request) -> None:
        asked = request.query_params
        await learning(told, site=asked.get("site"), machine=asked.get("machine"))
