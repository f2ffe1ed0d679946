"""The deliveries of recent notifications to webhooks."""

from collections.abc import Sequence

from service.page.components.blocks import panel
from service.page.components.data_table import Cell, Column, DataTable, Row, moment, tag_cell
from service.page.texts import text
from wire.enums import DeliveryState
from wire.rest.notifications import DeliveryView, NotificationView
from wire.rest.webhooks import WebhookView


class Deliveries:
    """The table of deliveries, newest notification first."""

    def __init__(self, zone: str) -> None:
        columns = [
            Column(text("notifications.column.notification")),
            Column(text("notifications.column.webhook")),
            Column(text("notifications.column.state")),
            Column(text("notifications.column.attempts"), number=True),
            Column(text("notifications.column.answer")),
            Column(text("notifications.column.next_attempt")),
        ]
        with panel(text("notifications.deliveries.title"), note=text("notifications.deliveries.note")):
            self._table = DataTable(columns, label=text("notifications.deliveries.title"), first=10, zone=zone)

    def show(self, notifications: Sequence[NotificationView], webhooks: Sequence[WebhookView]) -> None:
        """Show the deliveries of these notifications."""
        urls = {one.id: one.url for one in webhooks}
        rows = [_row(one, delivery, urls) for one in notifications for delivery in one.deliveries]
        self._table.show(rows, empty=text("notifications.deliveries.empty"))


def state_cell(delivery: DeliveryView) -> dict[str, object]:
    """Return a cell with the state of a delivery."""
    if delivery.state is DeliveryState.DELIVERED:
        return tag_cell(text("notifications.delivery.delivered"), "✓", "ac-good", 0)
    if delivery.state is DeliveryState.WAITING:
        return tag_cell(text("notifications.delivery.waiting"), "◐", "ac-sev-medium", 1)
    return tag_cell(text("notifications.delivery.given_up"), "✕", "ac-bad-word", 2)


def answer_text(delivery: DeliveryView) -> str:
    """Return the last response to a delivery: its status and what it means."""
    if not delivery.attempts:
        return ""
    parts = [str(one) for one in (delivery.status, delivery.answer) if one]
    return " ".join(parts) or text("notifications.no_response")


def _row(one: NotificationView, delivery: DeliveryView, urls: dict[int, str]) -> Row:
    webhook: Cell = {
        "text": text("notifications.webhook", webhook=delivery.webhook),
        "more": urls.get(delivery.webhook, ""),
    }
    cells: list[Cell] = [
        {"text": one.text, "more": f"{one.site}/{one.machine}"},
        webhook,
        state_cell(delivery),
        delivery.attempts,
        answer_text(delivery),
        moment(delivery.next_try),
    ]
    return Row(delivery.key, cells)
