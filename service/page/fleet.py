"""The fleet page: every machine as a card, most urgent first."""

from nicegui import html

from service.page.components.elements import FleetBoard
from service.page.horizon import horizon_hours
from service.page.layout import PageContext, layout
from service.page.texts import text
from wire.enums import Role


async def fleet(context: PageContext) -> None:
    """Draw the page; the browser then gets all cards, and after that changed cards."""
    hours = await horizon_hours(context)
    with layout(context, text("fleet.title"), path="/"):
        with html.div().classes("ac-head"):
            html.h1(text("fleet.heading", count=f"{hours:g}") if hours else text("fleet.heading.no_forecast"))
            html.span(text("fleet.note")).classes("quiet")
        board = FleetBoard(may_enrol=context.may(Role.ADMIN))

    async def load() -> None:
        board.load(await context.fleet.snapshot())

    board.on("ready", load)
    context.fleet.subscribe(board.load)
