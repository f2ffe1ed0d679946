"""The audit log: newest first, one page at a time, optionally of one user."""

from nicegui import html
from nicegui.events import GenericEventArguments

from service.page.components.blocks import pagination, panel
from service.page.components.data_table import Column, DataTable, Row, date_cell
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext, show_api_errors
from service.page.texts import text
from wire.rest.audit import AuditEntry

_PAGE_SIZE = 25
_EMIT_USER = """(event) => {
    event.preventDefault();
    emit(new FormData(event.target).get("user"));
}"""


class AuditLog:
    """One page of the audit log; the cursors of the previous pages lead back."""

    def __init__(self, context: PageContext) -> None:
        self._context, self._user = context, ""
        self._cursors: list[int | None] = [None]
        self._next: int | None = None
        columns = [
            Column(text("access.audit.user")),
            Column(text("access.audit.action")),
            Column(text("access.audit.object")),
            Column(text("access.audit.time")),
            Column(text("access.audit.reason")),
            Column(text("access.audit.origin"), hint=text("access.audit.origin_hint")),
        ]
        title = text("access.audit.title")
        with panel(title, note=text("access.audit.note")):
            with html.form(role="search").classes("ac-tools").on("submit", self._filter, js_handler=_EMIT_USER):
                with html.label():
                    html.span(text("access.audit.filter"))
                    html.input_(type="search", name="user", maxlength=200, placeholder="maria", autocomplete="off")
                html.button(text("access.audit.apply"), type="submit").classes("ac-button")
            self._table = DataTable(columns, label=title, first=_PAGE_SIZE, sortable=False, zone=context.zone)
            self._pagination = Refreshable(self._draw_pagination)

    async def refresh(self) -> None:
        """Fetch and show the current page."""
        cursor, user = self._cursors[-1], self._user
        page = await self._context.client.audit.page(who=user or None, limit=_PAGE_SIZE, cursor=cursor)
        if (cursor, user) != (self._cursors[-1], self._user):
            return  # another page was chosen in the meantime
        self._next = page.next
        self._table.show([_row(one) for one in page.entries], empty=text("access.audit.empty", user=user))
        self._pagination.show((len(self._cursors), page.next is not None))

    def _draw_pagination(self, shown: tuple[int, bool]) -> None:
        page, more = shown
        if page == 1 and not more:
            return
        pagination(
            (text("access.audit.newer"), self._newer, page > 1),
            (text("access.audit.older"), self._older, more),
            text("access.audit.page", page=page),
        )

    async def _filter(self, event: GenericEventArguments) -> None:
        self._user, self._cursors = str(event.args or "").strip(), [None]
        await self._show()

    async def _newer(self) -> None:
        self._cursors = self._cursors[:-1] or [None]
        await self._show()

    async def _older(self) -> None:
        if self._next is not None:
            self._cursors.append(self._next)
            await self._show()

    async def _show(self) -> None:
        with show_api_errors():
            await self.refresh()


def _row(entry: AuditEntry) -> Row:
    actors = {"gate": text("access.audit.gate"), "local admin": text("access.audit.local")}
    return Row(
        str(entry.id),
        [
            actors.get(entry.actor, entry.actor),
            entry.action.replace("_", " "),
            entry.subject,
            date_cell(entry.at),
            entry.reason or "",
            entry.origin or text("access.audit.internal"),
        ],
    )
