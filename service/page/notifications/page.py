"""The notifications page: recent notifications, their webhook deliveries, and the webhooks."""

from nicegui import html

from service.page.changes import Topic
from service.page.components.actions import ActionRunner
from service.page.components.blocks import panel, percent
from service.page.components.data_table import Cell, Column, DataTable, Row, alarm, figure, link, moment, tag_cell
from service.page.layout import PageContext, layout
from service.page.notifications.answers import answer_cell, answering, response_cell
from service.page.notifications.deliveries import Deliveries
from service.page.notifications.policies import Policies
from service.page.notifications.webhooks import Webhooks
from service.page.texts import text
from wire.enums import NotificationEnd, Role
from wire.rest.notifications import NotificationView
from wire.rest.webhooks import WebhookView

_NEWEST = 50


async def notifications(context: PageContext) -> None:
    """Draw the page."""
    with layout(context, text("notifications.title"), path="/notifications"):
        with html.div().classes("ac-head"):
            html.h1(text("notifications.heading"))
        html.p(text("notifications.note")).classes("quiet")
        _NotificationsPage(context)


class _NotificationsPage:
    """One open page."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        actions = ActionRunner()
        columns = [
            Column(text("notifications.column.machine")),
            Column(text("notifications.column.alarm")),
            Column(
                text("notifications.column.probability"),
                number=True,
                hint=text("notifications.column.probability_hint"),
            ),
            Column(text("notifications.column.opened")),
            Column(text("notifications.column.until"), hint=text("notifications.column.until_hint")),
            Column(text("notifications.column.state")),
            Column(text("notifications.column.response")),
            Column(text("notifications.column.given")),
            Column(text("notifications.column.sent_to")),
        ]
        with panel(text("notifications.recent"), note=text("notifications.recent_note"), wide=True):
            self._table = DataTable(columns, label=text("notifications.recent"), zone=context.zone)
            self._table.on_action(answering(context))
        self._policies = Policies(context, actions)
        with html.div().classes("ac-pair"):
            self._deliveries = Deliveries(context.zone)
            self._webhooks = Webhooks(context, actions)
        context.parts.add(self.refresh, Topic.NOTIFICATIONS, Topic.RESOURCES)

    async def refresh(self) -> None:
        """Fetch and show everything."""
        client, cache = self._context.client, self._context.cache
        page = await cache.get_or_fetch("notifications", lambda: client.notifications.page(limit=_NEWEST))
        fleet = await cache.get_or_fetch("machines", client.machines.list)
        zones = {f"{one.site}/{one.machine}": one.time_zone for one in fleet.machines}
        recent, webhooks = page.notifications, await self._list_webhooks()
        self._table.show([_row(one, zones, self._context) for one in recent], empty=text("notifications.empty"))
        policies = await cache.get_or_fetch("policies", client.policies.list)
        self._policies.show(policies.policies)
        self._deliveries.show(recent, webhooks)
        self._webhooks.show(webhooks, recent)

    async def _list_webhooks(self) -> list[WebhookView]:
        """Return the webhooks; a URL can contain a token, so only admins may see them."""
        if not self._context.may(Role.ADMIN):
            return []
        return (await self._context.cache.get_or_fetch("webhooks", self._context.client.webhooks.list)).webhooks


def _row(one: NotificationView, zones: dict[str, str], context: PageContext) -> Row:
    key = f"{one.site}/{one.machine}"
    zone = zones.get(key)
    sent_to = [text("notifications.held_back")] if one.held_back else []
    sent_to += [text("notifications.webhook", webhook=delivery.webhook) for delivery in one.deliveries]
    probability: Cell = (figure(one.probability, percent(one.probability)) or {}) | {
        "more": text("notifications.threshold", share=percent(one.threshold))
    }
    cells: list[Cell] = [
        link(key, f"/machines/{key}?code={one.code}"),
        alarm(one.code, one.text, one.severity) | {"more": _record(one)},
        probability,
        moment(one.opened_at, zone),
        moment(one.horizon_end, zone),
        _state(one),
        response_cell(one.response),
        answer_cell(one, context),
        ", ".join(sent_to),
    ]
    return Row(str(one.id), cells)


def _record(one: NotificationView) -> str:
    if not one.similar_total:
        return text("notifications.no_record", code=one.code)
    return text("notifications.record", code=one.code, right=one.similar_right, count=one.similar_total)


def _state(one: NotificationView) -> Cell:
    if one.open:
        state = tag_cell(text("notifications.open"), "◆", "ac-sev-medium", 1)
    else:
        state = tag_cell(text("notifications.closed"), "✓", "quiet", 0)
    if one.acknowledged is not None:
        return state | {"more": text("notifications.acknowledged", actor=one.acknowledged.actor)}
    return state | ({"more": _ended(one.ended)} if one.ended is not None else {})


def _ended(why: NotificationEnd) -> str:
    return {
        NotificationEnd.OCCURRED: text("notifications.ended.occurred"),
        NotificationEnd.CLEARED: text("notifications.ended.cleared"),
        NotificationEnd.SHELVED: text("notifications.ended.shelved"),
        NotificationEnd.MAINTENANCE: text("notifications.ended.maintenance"),
        NotificationEnd.EXPIRED: text("notifications.ended.expired"),
        NotificationEnd.WITHDRAWN: text("notifications.ended.withdrawn"),
        NotificationEnd.SHIFT_ENDED: text("notifications.ended.shift_ended"),
    }[why]
