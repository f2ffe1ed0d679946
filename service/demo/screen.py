"""The demo on one screen: events in, machines online, newest forecasts."""

from datetime import datetime

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from service.app.service import Service
from service.auth.users import FIRST
from service.errors import Unavailable
from service.forecasts.alarm_value import forecast_order
from wire.enums import JobState
from wire.forecasts import Forecast
from wire.identity import MachineId

_SHOWN = 3
_STYLES = {"ok": "green", "warming_up": "yellow", "stale": "red"}


def screen(service: Service, address: str, password: str) -> Panel:
    """Draw the present state of the service."""
    health = service.health()
    counts = health.counts
    head = Text.assemble(
        ("plant time ", "dim"), f"{service.clock.now():%a %Y-%m-%d %H:%M} UTC",
        ("   events in ", "dim"), f"{counts.get('stored', 0):,}",
        ("   forecasts stored ", "dim"), f"{counts.get('forecasts_stored', 0):,}",
        ("   model ", "dim"), health.model_version or "none yet",
    )  # fmt: skip
    learning = Text("\n".join(_jobs(service)), style="cyan")
    troubles = Text("\n".join(f"{part}: {why}" for part, why in health.errors.items()), style="red")
    foot = Text.assemble(
        ("the page: ", "dim"),
        address,
        ("   the API: ", "dim"),
        f"{address}/docs",
        ("   sign in: ", "dim"),
        f"{FIRST} / {password}",
        ("   end with Ctrl-C", "dim"),
    )
    return Panel(Group(head, learning, troubles, _machines(service), foot), title="Alarmcast")


def _jobs(service: Service) -> list[str]:
    """Return a line for what is being learned, and one for how many wait."""
    jobs = [job for job in service.stores.jobs.newest() if job.is_open]
    lines = []
    for job in jobs:
        if job.state is JobState.RUNNING:
            far = f" {job.progress.done}/{job.progress.total}" if job.progress.total else ""
            lines.append(f"learning {job.machine}: {job.progress.stage}{far}")
    waiting = len(jobs) - len(lines)
    return [*lines, f"{waiting} more wait to be learned"] if waiting else lines


def _machines(service: Service) -> Table:
    table = Table(expand=True)
    for title in ("machine", "agent", "status", "as of", "seen", "next 8 h, likeliest first (usual rate)"):
        table.add_column(title, no_wrap=title != "next 8 h, likeliest first (usual rate)")
    agents = service.stores.machines.agents()
    for forecast in _forecasts(service):
        machine = MachineId(forecast.site, forecast.machine)
        agent = agents.get(machine)
        online = "online" if agent and agent.online else "offline"
        table.add_row(
            str(machine),
            Text(online, style="green" if online == "online" else "red"),
            Text(forecast.status.value, style=_STYLES[forecast.status.value]),
            _hour(forecast.as_of),
            str(forecast.events_seen),
            _likely(forecast),
        )
    return table


def _forecasts(service: Service) -> list[Forecast]:
    try:
        newest = service.forecasts.cache.fresh_for(service.stores.machines.all())
    except Unavailable:
        return []
    return sorted((one.forecast for one in newest), key=forecast_order)


def _likely(forecast: Forecast) -> Text:
    text = Text()
    for alarm in forecast.alarms[:_SHOWN]:
        usual = "?" if alarm.base_rate is None else f"{alarm.base_rate:.0%}"
        style = "bold yellow" if alarm.expected else "dim"
        text.append(f"{alarm.code} {alarm.text} {alarm.probability:.0%} ({usual})   ", style=style)
    return text


def _hour(at: datetime) -> str:
    return f"{at:%H:%M}"
