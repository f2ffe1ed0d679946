"""Mounts the pages: routes, static files, error pages, middleware."""

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
from service.page.login.page import change_password, own_path, sign_in
from service.page.machine.page import machine
from service.page.notifications import notifications
from service.page.page_auth import PASSWORD, SIGN_IN, PageAuth, client_address
from service.page.page_memory import Collection, Undelivered
from service.page.page_rate_limit import ASSETS, PageRateLimit, Visitors
from service.page.security_headers import SecurityHeaders
from service.page.texts import SCRIPT, script, text

RECONNECT_S = 20.0  # a page and what is typed into it stay this long without a connection
_DRAW_TIMEOUT_S = 30.0  # a page of a busy service is slow rather than an error
_STATIC = Path(__file__).parent / "static"
Draw = Callable[[PageContext, Request], Awaitable[Response | None]]


def is_drawn(page: str) -> bool:
    """Return whether a page of this id waits for its browser or is open."""
    return page in Client.instances


def mount_pages(api: FastAPI, auth: PageAuth, visitors: Visitors) -> ASGIApp:
    """Return the API with the pages around it; once per process, because NiceGUI is a singleton."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with api.router.lifespan_context(api):
            yield
            auth.close()

    pages, undelivered = FastAPI(openapi_url=None, lifespan=lifespan), Undelivered()
    nicegui.on_delete(Collection().count)
    nicegui.get(SCRIPT)(_texts)  # before the folder that it seems to be in
    nicegui.add_static_files("/static", _STATIC)
    _add_public_pages(auth, undelivered)
    _add_user_pages(auth, undelivered)
    _add_error_pages(undelivered)
    ui.run_with(
        pages,
        title=text("common.product"),
        favicon=_STATIC / "icon.svg",
        dark=None,
        language="en-GB",  # of NiceGUI; texts of the page: service/page/texts
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=RECONNECT_S,
        show_welcome_message=False,
    )
    return ApiOrPages(api, SecurityHeaders(PageRateLimit(pages, visitors)))


def _texts() -> Response:
    return Response(script(), media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000"})


def _add_public_pages(auth: PageAuth, undelivered: Undelivered) -> None:
    """Add the pages that need no session."""

    @ui.page(SIGN_IN, response_timeout=_DRAW_TIMEOUT_S)
    async def _sign_in(request: Request) -> Response | None:
        undelivered.add(ui.context.client, client_address(request))
        wanted = request.query_params.get("next", "/")
        if await auth.identify(request) is not None:
            return RedirectResponse(own_path(wanted), 303)
        sign_in(wanted)
        return None

    @ui.page(PASSWORD, response_timeout=_DRAW_TIMEOUT_S)
    async def _password(request: Request) -> Response | None:
        undelivered.add(ui.context.client, client_address(request))
        identity = await auth.identify(request)
        if identity is None:
            return RedirectResponse(SIGN_IN, 303)
        change_password(identity[1].name, required=identity[1].must_change)
        return None


def _add_error_pages(undelivered: Undelivered) -> None:
    """Replace NiceGUI's error pages."""

    @nicegui.exception_handler(404)
    async def _not_found(request: Request, error: Exception) -> Response:
        endpoint = request.scope.get("endpoint")
        is_page = endpoint in (None, nicegui) or request.scope.get("nicegui_page_path")
        is_file = request.url.path.startswith(ASSETS) or not is_page
        if is_file and isinstance(error, HTTPException):
            return await http_exception_handler(request, error)
        with Client(ui.page(""), request=request) as client, login_layout(text("common.not_found")):
            undelivered.add(client, client_address(request))
            empty_state(text("common.not_found"), text("common.not_found.help"))
            with html.div().classes("ac-tools ac-middle"):
                html.a(text("common.go_to_fleet"), href="/").classes("ac-button")
        return client.build_response(request, 404)

    @nicegui.exception_handler(Unavailable)
    async def _unavailable(_request: Request, error: Unavailable) -> Response:
        headers = {} if error.retry_after is None else {"Retry-After": f"{error.retry_after:.0f}"}
        return PlainTextResponse(str(error), error.status, headers)

    show_error = nicegui.exception_handlers[Exception]

    @nicegui.exception_handler(Exception)
    async def _server_error(request: Request, error: Exception) -> Response:
        if is_client_disconnect(request.scope, error):
            return Response(status_code=204)
        response: Response = await show_error(request, error)  # type: ignore[misc]  # NiceGUI's is a coroutine
        return response


def _user_page(auth: PageAuth, undelivered: Undelivered) -> Callable[[str], Callable[[Draw], None]]:
    """Return a decorator that adds a page for signed-in users."""

    def page(address: str) -> Callable[[Draw], None]:
        def add(draw: Draw) -> None:
            async def draw_for_user(request: Request) -> Response | None:
                context = await auth.context_for(request)
                if isinstance(context, Response):
                    undelivered.add(ui.context.client, client_address(request))
                    return context
                undelivered.add(ui.context.client, f"user {context.me.name}")
                return await draw(context, request)

            ui.page(address, response_timeout=_DRAW_TIMEOUT_S)(draw_for_user)

        return add

    return page


def _add_user_pages(auth: PageAuth, undelivered: Undelivered) -> None:
    """Add the pages for signed-in users."""
    page = _user_page(auth, undelivered)

    @page("/")
    async def _fleet(context: PageContext, _request: Request) -> None:
        await fleet(context)

    @page("/machines/{site}/{name}")
    async def _machine(context: PageContext, request: Request) -> Response | None:
        found = await machine(context, request.path_params["site"], request.path_params["name"])
        return None if found else ui.context.client.build_response(request, 404)

    @page("/alarms")
    async def _alarms(context: PageContext, request: Request) -> None:
        await alarms(context, request.query_params)

    @page("/notifications")
    async def _notifications(context: PageContext, _request: Request) -> None:
        await notifications(context)

    @page("/health")
    async def _health(context: PageContext, _request: Request) -> None:
        await health(context)

    @page("/access")
    async def _access(context: PageContext, request: Request) -> Response | None:
        allowed = await access(context)
        return None if allowed else ui.context.client.build_response(request, 403)

    @page("/learning")
    async def _learning(context: PageContext, request: Request) -> None:
        query = request.query_params
        await learning(context, site=query.get("site"), machine=query.get("machine"))
