"""A fleet of two sites with something of everything at each, and clients of whoever a test wants to be."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from service.answers.store import AnswerStore
from service.app.service import Service
from service.app.stores import Stores
from service.auth.authenticator import LOCAL
from service.http.message import MACHINE, Message, Sentence
from service.machines.events import EventWrite, GapRow
from service.machines.models import Machine
from service.machines.silence import SilentMachine
from service.notifications.models import MaintenanceWindow, Notification, NotificationChanges
from service.notifications.store import NotificationStore, WebhookStore
from service.notifications.suppression_store import AcknowledgementStore, MaintenanceStore, ShelvingStore
from service.notifications.webhook import Webhook
from tests.service.conftest import NOW, connect_agent, enrolled, raise_alarms, small_model
from tests.support.ingest import take
from wire.enums import Answer, MachineState, Role, Severity
from wire.identity import MachineId
from wire.rest.answers import AnswerCreate
from wire.timestamps import to_us

SITES = ("padova", "lyon")
NAMES = {
    "machine": "filler-1",
    "number": "1",
    "code": "139",
    "job": "1",
    "version": "v1",
    "name": "maria",
    "path": "favicon.png",
}
HOUR = timedelta(hours=1)
SENTENCES = tuple(Sentence(f"The gate kept it out: {MACHINE} lost 0.08.", f"{site}/filler-1") for site in SITES)


def seed(service: Service, stores: Stores) -> dict[str, Machine]:
    """Let both sites have machines, alarms, knocks, quarantine, notices, jobs, shelves, windows and webhooks."""
    stores.versions.add_and_promote(small_model(), report=_report(), at=NOW - timedelta(days=1))
    machines = {}
    for site in SITES:
        machine = enrolled(stores.enrolments, MachineId(site, "filler-1"), name=f"Filler of {site}")
        raise_alarms(stores, machine, *((NOW - n * timedelta(minutes=7), 139 + n % 3) for n in range(1, 60)))
        raise_alarms(stores, machine, *((NOW - HOUR + n * timedelta(seconds=5), 26) for n in range(40)))
        connect_agent(stores, machine)
        _things_of(service, stores, machine)
        machines[site] = machine
    service.machines.silence.silent = [
        SilentMachine(machine.id, NOW - HOUR, 3.0, 2.0) for machine in machines.values()
    ]
    service.broker_access.credentials.locked_out = [machine.id for machine in machines.values()]
    for site in SITES:
        service.ingest.ingester.rejected[f"alarmcast/v1/{site}/filler-1"] += 5
    return machines


def _report() -> dict[str, Any]:
    both = [f"{site}/filler-1" for site in SITES]
    return {
        "summary": "2 machines",
        "memory": {"by_machine": {name: {"replayed": 90, "held_out": 10} for name in both}, "by_code": {"26": 12}},
        "left_out": dict.fromkeys(both, 3),
        "verdict": {
            "passed": False,
            "reasons": [one.as_json() for one in SENTENCES],
            "undecided": [one.as_json() for one in SENTENCES],
            "figures": [{"machine": name, "loss": 0.08} for name in both],
        },
    }


def _things_of(service: Service, stores: Stores, machine: Machine) -> None:
    site, database = machine.id.site, stores.database
    take(stores, b"{", b"broken", topic=f"alarmcast/v1/{site}/filler-1/events")
    take(stores, b"{}", topic=f"alarmcast/v1/{site}/stranger/events")
    gap = GapRow(machine.row_id, uuid4(), 900, 905, to_us(NOW - HOUR), to_us(NOW), "spool_full")
    stores.events.commit(EventWrite(to_us(NOW), gaps=[gap]))
    news = Notification(0, machine.id, 139, "Film torn", "high", NOW, NOW + 8 * HOUR, 0.7, 0.4, "v1", NOW)
    hook = Webhook(0, f"http://127.0.0.1/{site}", "s", Severity.LOW, site, None, enabled=True, created_at=NOW)
    WebhookStore(database).add(hook, who="test", reason=None)
    NotificationStore(database).write(NotificationChanges(opened=[(machine.row_id, news)]), at=NOW, wall=NOW)
    given = AnswerCreate(answer=Answer.HANDLED, note=f"done at {site}")
    valid = 8 * HOUR
    AnswerStore(database).answer_alarm(machine, 139, given, who="anna", at=NOW, valid=valid)
    AcknowledgementStore(database).add(machine, 139, at=NOW, who=f"somebody at {site}", note=None)
    ShelvingStore(database).add(machine, 26, at=NOW, until=NOW + HOUR, who=f"somebody at {site}", reason="noisy")
    window = MaintenanceWindow(0, site, None, NOW, NOW + HOUR, f"somebody at {site}", "oil")
    MaintenanceStore(database).add(window, at=NOW)
    job = stores.jobs.newest(machine=machine.id)[0]
    stores.jobs.set_message(job, Message(SENTENCES), MachineState.COLLECTING)
    people = service.auth.users
    people.add_key(f"board of {site}", Role.VIEWER, frozenset({site}), ttl=None, by=LOCAL)
