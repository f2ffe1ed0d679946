"""What was refused: how much for which reason, a look inside, and another chance."""

from nicegui import html, ui

from alarmcast import Conflict
from service.page.components.blocks import empty_state, panel
from service.page.components.data_table import Column, DataTable, Row, actions_cell, link, moment
from service.page.components.refreshable import Refreshable
from service.page.health.item import Item
from service.page.layout import PageContext, show_api_errors
from wire.enums import Role
from wire.rest.health import QuarantineTotals
from wire.rest.quarantine import QuarantineItemView, ReplayView

MEANINGS = {
    "topic": "the topic does not say who speaks",
    "not_json": "the body is no JSON",
    "oversize": "the message is larger than the contract allows",
    "too_many": "more events in one message than the contract allows",
    "bad_time": "an event's time is missing or impossible",
    "bad_code": "an event's code is missing or impossible",
    "bad_seq": "an event's number is missing or impossible",
    "bad_epoch": "the spool's epoch is missing or no UUID",
    "bad_shape": "a field is missing or of another kind",
    "bad_row": "a line of a history file cannot be read",
    "conflict": "an event's number was used before for another alarm; a replay stores it if it came from an agent",
    "internal": "a defect of ours; replay it after an update",
}
_PAGE = 50
_REASONS = [Column("reason"), Column("items", number=True), Column("last"), Column("")]
_ITEMS = [
    Column("received"),
    Column("from"),
    Column("what is wrong"),
    Column("bytes", number=True),
    Column(""),
]


class Quarantine:
    """Reasons, then the items of one of them, then one item whole; what is open stays open."""

    def __init__(self, told: PageContext) -> None:
        self._told, self._reason = told, ""
        with panel(
            "Quarantine", note="what was refused is kept whole until it is replayed or grows old", wide=True
        ):
            self._calm = Refreshable(_calm)
            self._reasons = DataTable(_REASONS, [], label="Quarantine by reason", first=12, zone=told.zone)
            self._reasons.on_action(self._on_reason)
            with html.div().classes("ac-inside") as self._inside:
                self._title: Refreshable[str] = Refreshable(html.h3)
                self._items = DataTable(_ITEMS, [], label="Items of this reason", first=10, zone=told.zone)
                self._items.on_action(self._on_item)
                self._item = Item(self._replay, told.zone)
        self._inside.set_visibility(False)

    def tell(self, totals: QuarantineTotals | None) -> None:
        """Show how much there is."""
        if totals is None:
            return
        self._calm.show(not totals.items)
        self._reasons.set_visibility(bool(totals.items))
        self._reasons.show(
            [
                Row(
                    one.reason,
                    [
                        {"text": one.reason, "more": MEANINGS.get(one.reason, "")},
                        one.items,
                        moment(one.last_at),
                        actions_cell(
                            ("look", "Look inside", f"Look inside {one.reason}"),
                            ("replay", "Replay all", f"Replay all of {one.reason}"),
                        )
                        if self._told.may(Role.OPERATOR)
                        else "",
                    ],
                )
                for one in totals.reasons
            ]
        )

    async def _on_reason(self, deed: str, reason: str) -> None:
        with show_api_errors():
            if deed == "look":
                await self._look(reason)
            else:
                _say(await self._told.client.quarantine.replay_all(reason=reason))
                await self._after_replay()

    async def _on_item(self, _deed: str, key: str) -> None:
        with show_api_errors():
            self._item.show(await self._told.client.quarantine.get(int(key)))
            self._items.choose(key)

    async def _look(self, reason: str) -> None:
        page = await self._told.client.quarantine.page(reason=reason, limit=_PAGE)
        self._reason = reason
        self._title.show(f"The newest {len(page.items)} of {reason}" if page.next else f"All of {reason}")
        self._reasons.choose(reason)
        self._items.show([_row(item) for item in page.items])
        self._inside.set_visibility(bool(page.items))
        if len(page.items) == 1:
            self._item.show(await self._told.client.quarantine.get(page.items[0].id))
        else:
            self._item.close()

    async def _replay(self, number: int, body: str | None) -> None:
        with show_api_errors():
            try:
                _say(await self._told.client.quarantine.replay(number, body=body))
            except Conflict as refused:
                ui.notify(f"Still refused: {refused.detail}", type="warning", multi_line=True)
                return
            await self._after_replay()

    async def _after_replay(self) -> None:
        await self._told.status.poll()
        await self._look(self._reason)


def _say(result: ReplayView) -> None:
    parts = [f"{result.stored} stored", f"{result.known} known already", f"{result.refused} still refused"]
    ui.notify(f"Replayed: {', '.join(parts)}.", type="warning" if result.refused else "positive")


def _row(item: QuarantineItemView) -> Row:
    whose = link(item.machine, f"/machines/{item.machine}") if item.machine else item.topic
    return Row(
        str(item.id),
        [
            moment(item.received_at),
            whose,
            item.detail,
            item.size,
            actions_cell(("open", "Open", f"Open item {item.id}")),
        ],
    )


def _calm(calm: bool) -> None:  # noqa: FBT001 - what is shown
    if calm:
        empty_state(
            "Nothing is quarantined", "What cannot be read as an alarm is kept here whole, with the reason."
        )
