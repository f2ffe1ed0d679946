"""The health page: what is wrong in sentences first, then the figures behind it, then what can be done."""

from nicegui import html

from service.page.health.agents import Agents
from service.page.health.notices import Notices
from service.page.health.quarantine import Quarantine
from service.page.health.status import Banner, Foundations, Ingest
from service.page.layout import PageContext, layout
from service.page.status_poller import StatusPoller


async def health(told: PageContext) -> None:
    """Draw the page; every beat renews what has changed since."""
    await told.status.newest()
    with layout(told, "Health", path="/health", stylesheet="health"):
        with html.div().classes("ac-head"):
            html.h1("How the service is")
            html.span("what comes in, what was refused, who waits, and what it all stands on").classes("quiet")
        banner = Banner()
        with html.div().classes("ac-pair"):
            ingest = Ingest()
            Agents(told)
            quarantine = Quarantine(told)
            foundations = Foundations()
            Notices(told)

    def tell(pulse: StatusPoller) -> None:
        banner.tell(pulse)
        if pulse.samples:
            status = pulse.samples[-1].status
            ingest.tell(pulse)
            quarantine.tell(status.quarantine)
            foundations.tell(status)

    tell(told.status)
    told.status.subscribe(tell)
