"""Builds the pages: routes, static files, and the one ear they share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from nicegui import app as nicegui
from nicegui import ui
from starlette.types import ASGIApp

from alarmcast import AsyncClient
from service.page.alarms import alarms
from service.page.fleet import fleet
from service.page.frame import Told
from service.page.front import Front
from service.page.health import health
from service.page.kept import Kept
from service.page.learning.page import learning
from service.page.live import Live
from service.page.machine.page import machine
from service.page.pulse import Pulse

_STATIC = Path(__file__).parent / "static"


def with_pages(api: FastAPI, client: AsyncClient) -> ASGIApp:
    """Return the API with the pages around it; ``client`` is how they ask it. Once a process: NiceGUI is one."""
    told = Told(client, Live(client), Pulse(client), Kept())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with api.router.lifespan_context(api):
            listening = [asyncio.create_task(told.live.run()), asyncio.create_task(told.pulse.run())]
            yield
            for ear in listening:
                ear.cancel()

    pages = FastAPI(openapi_url=None, lifespan=lifespan)
    nicegui.add_static_files("/static", _STATIC)

    @ui.page("/", title="Fleet · Alarmcast")
    async def _fleet() -> None:
        await fleet(told)

    @ui.page("/machines/{site}/{name}")
    async def _machine(site: str, name: str, request: Request) -> Response | None:
        known = await machine(told, site, name)
        return None if known else ui.context.client.build_response(request, 404)

    @ui.page("/alarms", title="Alarms · Alarmcast")
    async def _alarms(request: Request) -> None:
        await alarms(told, request.query_params)

    @ui.page("/health", title="Health · Alarmcast")
    async def _health() -> None:
        await health(told)

    @ui.page("/learning", title="Learning · Alarmcast")
    async def _learning(site: str | None = None, machine: str | None = None) -> None:
        await learning(told, site=site, machine=machine)

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
    return Front(api, pages)
