"""The fleet: every machine as a card, most urgent first."""

from nicegui import html

from service.page.components.elements import FleetBoard
from service.page.layout import PageContext, layout, subscribe
from wire.enums import Role


async def fleet(told: PageContext) -> None:
    """Draw the page; its cards come as soon as the browser is there, and then as they change."""
    with layout(told, "Fleet", path="/"):
        with html.div().classes("ac-head"):
            html.h1("Which alarms will come next")
            html.span("in the next hours, by machine, most urgent first").classes("quiet")
        board = FleetBoard(may_enrol=told.may(Role.ADMIN))

    async def load() -> None:
        board.load(await told.live.snapshot())

    board.on("ready", load)
    subscribe(told, board.load)
