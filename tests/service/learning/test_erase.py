"""Nothing follows an erasure: what is on its way when a machine goes is neither stored nor acked."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest
from sqlalchemy import func, select

from service.database.engine import Database
from service.database.event_row import FROM_THE_FUTURE, IN_TIME, EventRow
from service.database.tables import agents, epochs, events, forecasts, gaps, limit_counts, machines, quarantine
from service.errors import Conflict, Gone
from service.forecasts.store import ForecastStore
from service.forecasts.version import StoredForecast
from service.http.message import Message
from service.ingest.service import IncomingMessage, IngestBatch, TimePolicy, commit
from service.learning.enrolment_store import EnrolmentStore
from service.learning.history_file import ImportFile
from service.learning.history_import import BATCH, load_history
from service.learning.models import NewMachine
from service.machines.event_store import EventStore
from service.machines.event_write import EventWrite, GapRow, QuarantineRow, WriteResult
from service.machines.limits import MachineLimits
from service.machines.machine_cache import MachineCache
from service.machines.models import Agent, Machine
from service.machines.store import MachineStore
from tests.service.conftest import enrolled
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
ID, OTHER = MachineId("padova", "filler-1"), MachineId("padova", "filler-2")


@pytest.fixture
def machine(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), ID)


@pytest.fixture
def other(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), OTHER)


def everything(machine: Machine, epoch: UUID, seqs: range = range(1, 4)) -> EventWrite:
    """Return a recording of every kind of row."""
    flags = (IN_TIME, FROM_THE_FUTURE)
    return EventWrite(
        to_us(AT),
        events=[EventRow(machine.row_id, epoch, seq, 5, to_us(AT) + seq, flags[seq % 2]) for seq in seqs],
        gaps=[GapRow(machine.row_id, epoch, 10**6 + seqs[0], 10**6 + seqs[0], 1, 2, "spool_full")],
        quarantined=[QuarantineRow(machine.row_id, "t", "not_json", "x", b"%d" % seqs[0])],
        agent_states={machine.row_id: Agent(online=True, last_seen_at=AT, version="1", epoch=epoch)},
        seen_machines={machine.row_id},
    )


def erase(database: Database) -> list[str]:
    known = MachineStore(database).get(ID)
    return EnrolmentStore(database).erase(known, who="anna", at=AT, plant_at=AT, reason="asked")


def left(database: Database, machine: Machine) -> dict[str, int]:
    """Return the tables in which something of a machine is stored."""
    with database.read() as connection:
        counts = {
            table.name: connection.execute(
                select(func.count()).select_from(table).where(table.c.machine_id == machine.row_id)
            ).scalar_one()
            for table in (events, gaps, quarantine, agents, epochs, limit_counts, forecasts)
        }
    return {name: count for name, count in counts.items() if count}


def test_what_was_judged_before_an_erasure_is_not_stored_after_it(
    database: Database, machine: Machine, other: Machine
) -> None:
    store, epoch, ours = EventStore(database), uuid4(), uuid4()
    store.commit(everything(machine, epoch))
    assert set(left(database, machine)) == {"events", "gaps", "quarantine", "agents", "epochs"}
    erase(database)
    under_way = everything(machine, epoch, range(4, 9))
    under_way.events += everything(other, ours).events
    under_way.seen_machines.add(other.row_id)
    recorded = store.commit(under_way)
    assert recorded == WriteResult(3, 0, 0, absent=frozenset({machine.row_id}))
    assert {row.machine for row in recorded.new_events or ()} == {other.row_id}
    assert left(database, machine) == {}
    assert left(database, other) == {"events": 3, "agents": 1, "epochs": 1}


def test_a_retired_machine_that_still_speaks_is_not_stored_either(database: Database, machine: Machine) -> None:
    store = EventStore(database)
    EnrolmentStore(database).retire(machine, who="anna", at=AT, plant_at=AT, reason=None)
    assert store.commit(everything(machine, uuid4())).absent == {machine.row_id}
    assert left(database, machine) == {}


def test_an_agent_is_not_acked_what_came_after_its_machine_was_erased(
    database: Database, machine: Machine, other: Machine
) -> None:
    registry = MachineCache(MachineStore(database), monotonic=lambda: 0.0)
    intake = IngestBatch(AT, TimePolicy(), registry)
    for one in (machine, other):
        body = f'{{"epoch":"{uuid4()}","events":[{{"seq":1,"code":5,"at":"{AT.isoformat()}"}}]}}'
        intake.add(IncomingMessage(f"alarmcast/v1/{one.id}/events", body.encode()))
    erase(database)
    receipt = commit(intake, recorder=EventStore(database))
    assert [machine for machine, _ in receipt.acks] == [OTHER]
    assert receipt.counts["stored"] == receipt.counts["unregistered"] == 1


@pytest.mark.usefixtures("machine")
def test_an_agent_is_not_acked_what_has_no_room_for_its_epoch(database: Database) -> None:
    intake = IngestBatch(AT, TimePolicy(), MachineCache(MachineStore(database)))
    known = [uuid4(), uuid4()]
    for epoch in known:
        body = f'{{"epoch":"{epoch}","events":[{{"seq":1,"code":5,"at":"{AT.isoformat()}"}}]}}'
        intake.add(IncomingMessage(f"alarmcast/v1/{ID}/events", body.encode()))
    receipt = commit(intake, recorder=EventStore(database, MachineLimits(epochs=1)))
    ((_, ack),) = receipt.acks
    assert ack.epoch == min(known)
    assert receipt.counts["refused_epochs"] == 1


@pytest.mark.parametrize("and_enrolled_again", [False, True])
def test_a_history_that_is_being_loaded_stops_when_its_machine_is_erased(
    database: Database, machine: Machine, tmp_path: Path, *, and_enrolled_again: bool
) -> None:
    log = tmp_path / "log.csv"
    rows = (f"{AT - timedelta(seconds=one):%Y-%m-%d %H:%M:%S},{one % 90}" for one in range(2 * BATCH + 500))
    log.write_text("timestamp,alarm\n" + "\n".join(rows) + "\n")

    def progress(done: int, _lines: int) -> None:
        if done >= BATCH and left(database, machine):
            erase(database)
            if and_enrolled_again:
                new = NewMachine(ID, None, None)
                EnrolmentStore(database).enrol(new, key=None, who="anna", at=AT, plant_at=AT)

    store = EventStore(database)
    with pytest.raises(Gone, match="retired or erased while its history was loaded"):
        load_history(machine, ImportFile(log), recorder=store, now=AT, policy=TimePolicy(), progress=progress)
    assert left(database, machine) == {}


def test_an_erasure_that_broke_off_is_finished_by_the_next_one(database: Database, machine: Machine) -> None:
    EventStore(database).commit(everything(machine, uuid4()))
    begun = "It is being erased; it had been learned by v3, v12. Erase it again if this does not end."
    with database.write() as connection:
        connection.execute(machines.update().values(state="retired", reason=begun))
    with pytest.raises(Conflict, match="is being erased"):
        enrolled(EnrolmentStore(database), ID)
    for _ in range(2):
        assert erase(database) == ["v3", "v12"]
        assert left(database, machine) == {}
        assert MachineStore(database).get(ID).reason == Message.of("Erased; it had been learned by v3, v12.")
    assert enrolled(EnrolmentStore(database), ID).reason is None


def test_a_forecast_that_was_being_made_is_not_stored_for_an_erased_machine(
    database: Database, machine: Machine, other: Machine
) -> None:
    with database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO model_versions (id, created_us, weights, report) VALUES (1, 0, 'w', '{}')"
        )
    erase(database)
    made = [
        StoredForecast(one.row_id, AT, 1, "ok", 3, 1.0, np.zeros(3, dtype=np.float32)) for one in (machine, other)
    ]
    ForecastStore(database).add(made)
    assert left(database, machine) == {}
    assert left(database, other) == {"forecasts": 1}
