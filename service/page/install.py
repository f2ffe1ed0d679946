"""Builds the pages: routes, static files, and the one ear they share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from nicegui import app as nicegui
from nicegui import ui
from starlette.types import ASGIApp

from alarmcast import AsyncClient
from service.page.fleet import fleet
from service.page.frame import Told
from service.page.front import Front
from service.page.learning.page import learning
from service.page.live import Live

_STATIC = Path(__file__).parent / "static"


def with_pages(api: FastAPI, client: AsyncClient) -> ASGIApp:
    """Return the API with the pages around it; ``client`` is how they ask it. Once a process: NiceGUI is one."""
    told = Told(client, Live(client))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        ear = asyncio.create_task(told.live.run())
        async with api.router.lifespan_context(api):
            yield
        ear.cancel()

    pages = FastAPI(openapi_url=None, lifespan=lifespan)
    nicegui.add_static_files("/static", _STATIC)

    @ui.page("/", title="Fleet · Alarmcast")
    async def _fleet() -> None:
        await fleet(told)

    @ui.page("/learning", title="Learning · Alarmcast")
    async def _learning(site: str | None = None, machine: str | None = None) -> None:
        await learning(told, site=site, machine=machine)

    ui.run_with(
        pages,
        title="Alarmcast",
        favicon=_STATIC / "icon.svg",
        dark=None,
        tailwind=False,
        binding_refresh_interval=None,
        show_welcome_message=False,
    )
    return Front(api, pages)
