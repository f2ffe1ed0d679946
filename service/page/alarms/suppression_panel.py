"""What is kept quiet: shelved alarms and maintenance windows, with who, until when and why."""

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
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext, show_api_errors
from wire.enums import Role
from wire.rest.machines import MachineView
from wire.rest.suppression import MaintenanceView, ShelvedAlarmView
from wire.zones import common_zone

_SHELVES = [Column("machine"), Column("alarm"), Column("until"), Column("who and why"), Column("")]
_WINDOWS = [
    Column("where"),
    Column("state"),
    Column("from"),
    Column("until"),
    Column("who and why"),
    Column(""),
]
_SHOWN_WINDOWS = 50
_HOURS = [("1", "1 hour"), ("4", "4 hours"), ("8", "8 hours"), ("24", "1 day"), ("72", "3 days"), ("", "until …")]


class SuppressionPanel:
    """Both lists, and the deeds that end them or plan another window."""

    def __init__(self, told: PageContext, machines: list[MachineView]) -> None:
        self._told, self._machines, self._may = told, machines, told.may(Role.OPERATOR)
        self._names = {f"{one.site}/{one.machine}": machine_title(one) for one in machines}
        self._zones = {f"{one.site}/{one.machine}": one.time_zone for one in machines}
        with html.div().classes("ac-pair"):
            with panel("Shelved now"):
                html.p(
                    "No notification of a shelved alarm is sent. It is still forecast and learned from; it is "
                    "left out of the alarm figures until then. Shelve one on its machine's page."
                ).classes("quiet small")
                self._no_shelves = Refreshable(_calm)
                self._shelves = DataTable(_SHELVES, [], label="Shelved alarms", first=10, zone=told.zone)
                self._shelves.on_action(self._unshelve)
            with panel("Maintenance"):
                html.p(
                    "While people work on a machine or a site, nothing of it is told; its alarms are stored and "
                    "counted all the same."
                ).classes("quiet small")
                self._no_windows = Refreshable(_calm)
                self._windows = DataTable(_WINDOWS, [], label="Maintenance windows", first=6, zone=told.zone)
                self._windows.on_action(self._end)
                if self._may:
                    self._form()

    async def renew(self) -> None:
        """Show what is kept quiet now."""
        with show_api_errors():
            shelves = (await self._told.cache.get_or_fetch("shelves", self._told.client.shelves.list_all)).shelves
            windows = (await self._told.cache.get_or_fetch("windows", self._told.client.maintenance.page)).windows
            now = datetime.fromisoformat((await self._told.fleet.snapshot())["plant_time"])
            self._no_shelves.show("" if shelves else "Nothing is shelved.")
            self._shelves.set_visibility(bool(shelves))
            self._shelves.show([self._shelf(one) for one in shelves])
            self._no_windows.show("" if windows else "No maintenance is planned.")
            self._windows.set_visibility(bool(windows))
            self._windows.show([self._window(one, now) for one in windows[:_SHOWN_WINDOWS]])

    def _form(self) -> None:
        sites = sorted({one.site for one in self._machines})
        places = [(site, f"{site}, the whole site") for site in sites]
        places += sorted(self._names.items(), key=lambda one: one[1])
        with html.details().classes("ac-details"):
            html.summary("Plan maintenance")
            with form(self._plan, button="Plan it"):
                choice("where", "Where", places)
                entry("from", "From, in plant time (now if empty)", kind="datetime-local")
                choice("hours", "For", _HOURS, "8")
                entry("until", "Until, instead", kind="datetime-local")
                entry("reason", "Why", required=True, maxlength=1000, placeholder="Yearly overhaul")

    async def _plan(self, typed: Typed) -> None:
        site, _, machine = typed["where"].partition("/")
        zone = self._zone(typed["where"])
        start = _moment(typed["from"], ZoneInfo(zone))
        until = _moment(typed["until"], ZoneInfo(zone))
        if until is None and not typed["hours"]:
            raise AlarmcastError("Say until when: fill in the moment, or choose for how long.")
        if until is None:
            begin = start or datetime.fromisoformat((await self._told.fleet.snapshot())["plant_time"])
            until = begin + timedelta(hours=int(typed["hours"]))
        made = await self._told.client.maintenance.create(
            site,
            machine=machine or None,
            since=start,
            until=until,
            reason=typed["reason"],
        )
        ui.notify(f"Nothing of {typed['where']} is told until {plant_time(made.until, zone)}.", type="positive")
        await self._changed()

    async def _unshelve(self, _deed: str, key: str) -> None:
        machine, number = key.split()
        with show_api_errors():
            await self._told.client.shelves.unshelve(machine, int(number))
            ui.notify("Unshelved. It sends notifications and is in the alarm figures again.", type="positive")
            await self._changed()

    async def _end(self, _deed: str, key: str) -> None:
        with show_api_errors():
            await self._told.client.maintenance.cancel(int(key))
            ui.notify("Ended; its machines are told of again.", type="positive")
            await self._changed()

    async def _changed(self) -> None:
        self._told.cache.invalidate()
        await self.renew()

    def _shelf(self, one: ShelvedAlarmView) -> Row:
        key = f"{one.site}/{one.machine}"
        return Row(
            f"{key} {one.id}",
            [
                link(self._names.get(key, key), f"/machines/{key}", key),
                alarm(one.code, one.text, None),
                moment(one.until, self._zones.get(key)),
                {"text": one.reason, "more": one.actor},
                actions_cell(("lift", "Unshelve", f"Unshelve {one.text} of {key}")) if self._may else "",
            ],
        )

    def _window(self, one: MaintenanceView, now: datetime) -> Row:
        key = f"{one.site}/{one.machine}" if one.machine else one.site
        where: Cell = link(self._names.get(key, key), f"/machines/{key}", key) if one.machine else one.site
        zone = self._zone(key)
        ended = one.cancelled_at or one.until
        ahead = one.cancelled_at is None and one.start > now
        if one.active:
            state = tag_cell("holds", "◐", "ac-sev-low", 2)
        else:
            state = tag_cell("planned", "○", "quiet", 1) if ahead else tag_cell("over", "✓", "quiet", 0)
        deed: Cell = (
            actions_cell(("end", "End", f"End the maintenance of {key}"))
            if self._may and (one.active or ahead)
            else ""
        )
        said: Cell = {"text": one.reason, "more": one.actor}
        return Row(str(one.id), [where, state, moment(one.start, zone), moment(ended, zone), said, deed])

    def _zone(self, where: str) -> str:
        """Return the time zone of a machine, or of most machines of a site."""
        return common_zone(zone for key, zone in self._zones.items() if where in (key, key.partition("/")[0]))


def _moment(typed: str, zone: ZoneInfo) -> datetime | None:
    return datetime.fromisoformat(typed).replace(tzinfo=zone).astimezone(UTC) if typed else None


def _calm(sentence: str) -> None:
    if sentence:
        html.p(sentence).classes("ac-empty")
