"""What was changed: the book, newest first, a page at a time, all of it or what one person or program did."""

from nicegui import html
from nicegui.events import GenericEventArguments

from service.page.access.widgets import calm, turn_pages
from service.page.components.blocks import panel
from service.page.components.data_table import Column, DataTable, Row, date_cell
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext, show_api_errors
from wire.rest.audit import AuditEntry

_COLUMNS = [
    Column("who"),
    Column("did"),
    Column("to"),
    Column("when"),
    Column("why"),
    Column("from", hint="The address it was asked from."),
]
_PAGE = 25
_SENT = """(event) => {
    event.preventDefault();
    emit(new FormData(event.target).get("who"));
}"""


class Changes:
    """One page of the book; the cursors of the pages before it are the way back."""

    def __init__(self, told: PageContext) -> None:
        self._told, self._who = told, ""
        self._cursors: list[int | None] = [None]
        self._next: int | None = None
        with panel("What was changed", note="newest first; nothing is ever taken out"):
            with html.form(role="search").classes("ac-tools").on("submit", self._search, js_handler=_SENT):
                with html.label():
                    html.span("Only what this one did")
                    html.input_(type="search", name="who", maxlength=200, placeholder="maria", autocomplete="off")
                html.button("Show", type="submit").classes("ac-button")
            self._calm = Refreshable(calm)
            self._table = DataTable(
                _COLUMNS, [], label="What was changed", first=_PAGE, sortable=False, zone=told.zone
            )
            self._pages = Refreshable(self._draw_pages)

    async def renew(self) -> None:
        """Show this page of it as it is now."""
        cursor, who = self._cursors[-1], self._who
        page = await self._told.client.audit.page(who=who or None, limit=_PAGE, cursor=cursor)
        if (cursor, who) != (self._cursors[-1], self._who):
            return  # somebody has turned the page meanwhile
        self._next = page.next
        self._calm.show("" if page.entries else f"Nobody called {who} has changed anything.")
        self._table.set_visibility(bool(page.entries))
        self._table.show([_row(one) for one in page.entries])
        self._pages.show((len(self._cursors), page.next is not None))

    def _draw_pages(self, told: tuple[int, bool]) -> None:
        page, more = told
        if page == 1 and not more:
            return
        turn_pages(("Newer", self._back, page > 1), ("Older", self._on, more), f"page {page}")

    async def _search(self, event: GenericEventArguments) -> None:
        self._who, self._cursors = str(event.args or "").strip(), [None]
        await self._turned()

    async def _back(self) -> None:
        self._cursors = self._cursors[:-1] or [None]
        await self._turned()

    async def _on(self) -> None:
        if self._next is not None:
            self._cursors.append(self._next)
            await self._turned()

    async def _turned(self) -> None:
        with show_api_errors():
            await self.renew()


def _row(entry: AuditEntry) -> Row:
    did = entry.action.replace("_", " ")
    origin = entry.origin or "the service itself"
    return Row(str(entry.id), [entry.actor, did, entry.subject, date_cell(entry.at), entry.reason or "", origin])
