"""The health page: errors and warnings first, then the figures behind them."""

from nicegui import html

from service.page.feeds import StatusHistory
from service.page.health.agents import Agents
from service.page.health.quarantine import Quarantine
from service.page.health.status import Infrastructure, Ingest, StatusBanner
from service.page.layout import PageContext, layout
from service.page.texts import text


async def health(context: PageContext) -> None:
    """Draw the page; every status sample refreshes it."""
    await context.status.newest()
    with layout(context, text("health.title"), path="/health", stylesheet="health"):
        with html.div().classes("ac-head"):
            html.h1(text("health.heading"))
        banner = StatusBanner()
        with html.div().classes("ac-pair"):
            ingest = Ingest()
            infrastructure = Infrastructure()
            Agents(context)
            quarantine = Quarantine(context)

    def show(history: StatusHistory) -> None:
        banner.show(history)
        if history.samples:
            status = history.samples[-1].status
            ingest.show(history)
            quarantine.show(status.quarantine)
            infrastructure.show(status)

    show(context.status)
    context.status.subscribe(show)
