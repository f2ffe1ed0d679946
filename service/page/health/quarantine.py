"""Rejected messages: counts by reason, the items of a reason, and their replay."""

from nicegui import html, ui

from alarmcast import Conflict
from service.page.components.blocks import empty_state, panel
from service.page.components.data_table import Column, DataTable, Row, actions_cell, link, moment
from service.page.components.refreshable import Refreshable
from service.page.health.quarantine_item import QuarantineItem
from service.page.layout import PageContext, show_api_errors
from service.page.texts import text
from wire.enums import Role
from wire.rest.health import QuarantineTotals
from wire.rest.quarantine import QuarantineItemView, ReplayView

_SHOWN_ITEMS = 50


class Quarantine:
    """Reasons, the items of the chosen reason, and one item in full; what is open stays open."""

    def __init__(self, context: PageContext) -> None:
        self._context, self._reason = context, ""
        reason_columns = [
            Column(text("health.quarantine.reason")),
            Column(text("health.quarantine.items"), number=True),
            Column(text("health.quarantine.last")),
            Column(""),
        ]
        item_columns = [
            Column(text("health.quarantine.received")),
            Column(text("health.quarantine.source")),
            Column(text("health.quarantine.detail")),
            Column(text("health.quarantine.bytes"), number=True),
            Column(""),
        ]
        with panel(text("health.quarantine.title"), note=text("health.quarantine.note"), wide=True):
            self._empty = Refreshable(_empty)
            self._reasons = DataTable(
                reason_columns, label=text("health.quarantine.by_reason"), first=12, zone=context.zone
            )
            self._reasons.on_action(self._on_reason)
            with html.div().classes("ac-inside") as self._items_panel:
                self._title: Refreshable[str] = Refreshable(html.h3)
                self._items = DataTable(
                    item_columns, label=text("health.quarantine.items_label"), first=10, zone=context.zone
                )
                self._items.on_action(self._on_item)
                self._item = QuarantineItem(self._replay, context.zone)
        self._items_panel.set_visibility(False)

    def show(self, totals: QuarantineTotals | None) -> None:
        """Show the counts by reason."""
        if totals is None:
            return
        self._empty.show(not totals.items)
        self._reasons.set_visibility(bool(totals.items))
        may_replay = self._context.may(Role.OPERATOR)
        self._reasons.show(
            [
                Row(
                    one.reason,
                    [
                        {"text": one.reason, "more": _explain(one.reason)},
                        one.items,
                        moment(one.last_at),
                        _reason_actions(one.reason) if may_replay else "",
                    ],
                )
                for one in totals.reasons
            ]
        )

    async def _on_reason(self, action: str, reason: str) -> None:
        with show_api_errors():
            if action == "show":
                await self._show_items(reason)
            else:
                _notify(await self._context.client.quarantine.replay_all(reason=reason))
                await self._after_replay()

    async def _on_item(self, _action: str, key: str) -> None:
        with show_api_errors():
            self._item.show(await self._context.client.quarantine.get(int(key)))
            self._items.choose(key)

    async def _show_items(self, reason: str) -> None:
        page = await self._context.client.quarantine.page(reason=reason, limit=_SHOWN_ITEMS)
        self._reason = reason
        if page.next:
            self._title.show(text("health.quarantine.newest", count=len(page.items), reason=reason))
        else:
            self._title.show(text("health.quarantine.all", reason=reason))
        self._reasons.choose(reason)
        self._items.show([_row(item) for item in page.items])
        self._items_panel.set_visibility(bool(page.items))
        if len(page.items) == 1:
            self._item.show(await self._context.client.quarantine.get(page.items[0].id))
        else:
            self._item.close()

    async def _replay(self, item: int, body: str | None) -> None:
        with show_api_errors():
            try:
                _notify(await self._context.client.quarantine.replay(item, body=body))
            except Conflict as error:
                message = text("health.quarantine.still_rejected", detail=error.detail)
                ui.notify(message, type="warning", multi_line=True)
                return
            await self._after_replay()

    async def _after_replay(self) -> None:
        await self._context.status.sample()
        await self._show_items(self._reason)


def _reason_actions(reason: str) -> dict[str, object]:
    return actions_cell(
        ("show", text("health.quarantine.show"), text("health.quarantine.show_label", reason=reason)),
        (
            "replay",
            text("health.quarantine.replay_all"),
            text("health.quarantine.replay_all_label", reason=reason),
        ),
    )


def _notify(result: ReplayView) -> None:
    message = text("health.quarantine.replayed", stored=result.stored, known=result.known, refused=result.refused)
    ui.notify(message, type="warning" if result.refused else "positive")


def _row(item: QuarantineItemView) -> Row:
    open_item = ("open", text("health.quarantine.open"), text("health.quarantine.open_label", item=item.id))
    source = link(item.machine, f"/machines/{item.machine}") if item.machine else item.topic
    return Row(str(item.id), [moment(item.received_at), source, item.detail, item.size, actions_cell(open_item)])


def _empty(empty: bool) -> None:  # noqa: FBT001 - what is shown
    if empty:
        empty_state(text("health.quarantine.empty.title"), text("health.quarantine.empty.help"))


def _explain(reason: str) -> str:
    explanations = {
        "topic": text("health.reason.topic"),
        "not_json": text("health.reason.not_json"),
        "oversize": text("health.reason.oversize"),
        "too_many": text("health.reason.too_many"),
        "bad_time": text("health.reason.bad_time"),
        "unreadable_row": text("health.reason.unreadable_row"),
        "bad_code": text("health.reason.bad_code"),
        "bad_seq": text("health.reason.bad_seq"),
        "bad_epoch": text("health.reason.bad_epoch"),
        "bad_shape": text("health.reason.bad_shape"),
        "bad_row": text("health.reason.bad_row"),
        "conflict": text("health.reason.conflict"),
        "internal": text("health.reason.internal"),
    }
    return explanations.get(reason, "")
