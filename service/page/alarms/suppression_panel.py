"""Suppressed notifications: shelved alarms and maintenance windows, with user, end and reason."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from nicegui import html, ui

from alarmcast import AlarmcastError
from service.page.components.blocks import machine_title, panel, plant_time
from service.page.components.data_table import (
    Cell,
    Column,
    DataTable,
    Row,
    actions_cell,
    alarm,
    link,
    moment,
    tag_cell,
)
from service.page.components.forms import Typed, choice, entry, form
from service.page.layout import PageContext, show_api_errors
from service.page.texts import text
from wire.enums import Role
from wire.rest.machines import MachineView
from wire.rest.suppression import MaintenanceView, ShelvedAlarmView
from wire.zones import common_zone

_SHOWN_WINDOWS = 50


class SuppressionPanel:
    """Both lists, with actions for operators."""

    def __init__(self, context: PageContext, machines: list[MachineView]) -> None:
        self._context, self._machines = context, machines
        self._may_change = context.may(Role.OPERATOR)
        self._names = {f"{one.site}/{one.machine}": machine_title(one) for one in machines}
        self._zones = {f"{one.site}/{one.machine}": one.time_zone for one in machines}
        end, reason, actions = Column(text("alarms.column.end")), Column(text("alarms.column.reason")), Column("")
        shelf_columns = [Column(text("alarms.column.machine")), Column(text("alarms.column.alarm"))]
        window_columns = [
            Column(text("alarms.column.scope")),
            Column(text("alarms.column.state")),
            Column(text("alarms.column.start")),
        ]
        with html.div().classes("ac-pair"):
            with panel(text("alarms.shelved.title")):
                html.p(text("alarms.shelved.help")).classes("quiet small")
                self._shelves = DataTable(
                    [*shelf_columns, end, reason, actions],
                    label=text("alarms.shelved.title"),
                    first=10,
                    zone=context.zone,
                )
                self._shelves.on_action(self._unshelve)
            with panel(text("alarms.maintenance.title")):
                html.p(text("alarms.maintenance.help")).classes("quiet small")
                self._windows = DataTable(
                    [*window_columns, end, reason, actions],
                    label=text("alarms.maintenance.label"),
                    first=6,
                    zone=context.zone,
                )
                self._windows.on_action(self._end)
                if self._may_change:
                    self._form()

    async def refresh(self) -> None:
        """Fetch and show both lists."""
        cache, client = self._context.cache, self._context.client
        shelves = (await cache.get_or_fetch("shelves", client.shelves.list_all)).shelves
        windows = (await cache.get_or_fetch("windows", client.maintenance.page)).windows
        now = await self._now()
        self._shelves.show([self._shelf(one) for one in shelves], empty=text("alarms.shelved.empty"))
        rows = [self._window(one, now) for one in windows[:_SHOWN_WINDOWS]]
        self._windows.show(rows, empty=text("alarms.maintenance.empty"))

    def _form(self) -> None:
        sites = sorted({one.site for one in self._machines})
        scopes = [(site, text("alarms.maintenance.whole_site", site=site)) for site in sites]
        scopes += sorted(self._names.items(), key=lambda one: one[1])
        hours = [
            ("1", text("alarms.duration.1h")),
            ("4", text("alarms.duration.4h")),
            ("8", text("alarms.duration.8h")),
            ("24", text("alarms.duration.24h")),
            ("72", text("alarms.duration.72h")),
            ("", text("alarms.duration.custom")),
        ]
        example = text("alarms.maintenance.reason_example")
        with html.details().classes("ac-details"):
            html.summary(text("alarms.maintenance.open_form"))
            with form(self._schedule, button=text("alarms.maintenance.submit")):
                choice("where", text("alarms.maintenance.scope"), scopes)
                entry("from", text("alarms.maintenance.start"), kind="datetime-local")
                choice("hours", text("alarms.maintenance.duration"), hours, "8")
                entry("until", text("alarms.maintenance.until"), kind="datetime-local")
                entry(
                    "reason", text("alarms.maintenance.reason"), required=True, maxlength=1000, placeholder=example
                )

    async def _schedule(self, typed: Typed) -> None:
        site, _, machine = typed["where"].partition("/")
        zone = self._zone(typed["where"])
        start = _moment(typed["from"], ZoneInfo(zone))
        until = _moment(typed["until"], ZoneInfo(zone))
        if until is None and not typed["hours"]:
            raise AlarmcastError(text("alarms.maintenance.no_end"))
        if until is None:
            until = (start or await self._now()) + timedelta(hours=int(typed["hours"]))
        window = await self._context.client.maintenance.create(
            site, machine=machine or None, since=start, until=until, reason=typed["reason"]
        )
        until_text = plant_time(window.until, zone)
        ui.notify(text("alarms.maintenance.done", scope=typed["where"], until=until_text), type="positive")

    async def _unshelve(self, _action: str, key: str) -> None:
        machine, number = key.split()
        with show_api_errors():
            await self._context.client.shelves.unshelve(machine, int(number))
            ui.notify(text("alarms.shelved.done"), type="positive")

    async def _end(self, _action: str, key: str) -> None:
        with show_api_errors():
            await self._context.client.maintenance.cancel(int(key))
            ui.notify(text("alarms.maintenance.ended"), type="positive")

    async def _now(self) -> datetime:
        return datetime.fromisoformat((await self._context.fleet.snapshot())["plant_time"])

    def _shelf(self, one: ShelvedAlarmView) -> Row:
        key = f"{one.site}/{one.machine}"
        label = text("alarms.shelved.unshelve_label", alarm=one.text, machine=key)
        action: Cell = (
            actions_cell(("unshelve", text("alarms.shelved.unshelve"), label)) if self._may_change else ""
        )
        return Row(
            f"{key} {one.id}",
            [
                link(self._names.get(key, key), f"/machines/{key}", key),
                alarm(one.code, one.text, None),
                moment(one.until, self._zones.get(key)),
                {"text": one.reason, "more": one.actor},
                action,
            ],
        )

    def _window(self, one: MaintenanceView, now: datetime) -> Row:
        key = f"{one.site}/{one.machine}" if one.machine else one.site
        scope: Cell = link(self._names.get(key, key), f"/machines/{key}", key) if one.machine else one.site
        zone = self._zone(key)
        planned = one.cancelled_at is None and one.start > now
        if one.active:
            state = tag_cell(text("alarms.maintenance.active"), "◐", "ac-sev-low", 2)
        elif planned:
            state = tag_cell(text("alarms.maintenance.planned"), "○", "quiet", 1)
        else:
            state = tag_cell(text("alarms.maintenance.over"), "✓", "quiet", 0)
        action: Cell = ""
        if self._may_change and (one.active or planned):
            label = text("alarms.maintenance.end_label", scope=key)
            action = actions_cell(("end", text("alarms.maintenance.end"), label))
        return Row(
            str(one.id),
            [
                scope,
                state,
                moment(one.start, zone),
                moment(one.cancelled_at or one.until, zone),
                {"text": one.reason, "more": one.actor},
                action,
            ],
        )

    def _zone(self, scope: str) -> str:
        """Return the time zone of a machine, or the most common one of a site."""
        return common_zone(zone for key, zone in self._zones.items() if scope in (key, key.partition("/")[0]))


def _moment(typed: str, zone: ZoneInfo) -> datetime | None:
    return datetime.fromisoformat(typed).replace(tzinfo=zone).astimezone(UTC) if typed else None
