"""Upgrades from the initial schema keep all data on both databases; what cannot be upgraded is refused."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

from service.auth.audit_store import AuditStore
from service.auth.store import ApiKeyStore, SessionStore, UserStore
from service.broker_access.store import CredentialStore
from service.database import schema
from service.database.backup import DATABASE, back_up, check
from service.database.engine import Database
from service.database.event_row import EventRow
from service.database.weight_files import WeightsFolder
from service.errors import InputRejected, WrongSchema
from service.forecasts.store import ForecastStore
from service.forecasts.version_store import VersionStore
from service.learning.enrolment_store import EnrolmentStore
from service.learning.evaluation_store import HoldoutStore
from service.learning.job_store import JobStore
from service.learning.memory_store import MemoryStore
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, PageQuery
from service.machines.models import QuarantineQuery
from service.machines.quarantine_store import QuarantineStore
from service.machines.store import MachineStore
from service.notifications.models import NotificationQuery, SuppressionQuery
from service.notifications.store import DeliveryStore, NotificationStore, WebhookStore
from service.notifications.suppression_store import AcknowledgementStore, MaintenanceStore, ShelvingStore
from service.scoring.store import OutcomeStore
from tests.service.conftest import EPOCH, FILLER, NOW, enrolled
from tests.service.database.schema_diff import differences
from tests.support.sample_database import INITIAL, fill, next_schema
from wire.enums import JobState, MachineState, Role
from wire.identity import MachineId
from wire.timestamps import to_us

DAY = timedelta(days=1)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without a table, of both kinds."""
    if request.param == "sqlite":
        opened = Database(f"sqlite:///{tmp_path / DATABASE}")
    else:
        opened = Database(request.getfixturevalue("postgresql"))
        with opened.write() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    yield opened
    opened.close()


def fill_database(database: Database, weights: Path) -> None:
    with database.write() as connection:
        fill(connection, weights)


def test_the_scripts_are_named_in_the_order_in_which_they_follow_each_other() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.SCRIPTS))
    walked = [one.revision for one in ScriptDirectory.from_config(config).walk_revisions()]
    assert list(schema.known_revisions()) == walked[::-1]


def test_a_database_of_the_initial_schema_is_read_after_the_upgrade_to_this_version(
    empty: Database, tmp_path: Path
) -> None:
    fill_database(empty, tmp_path / "weights")
    empty.upgrade()
    with empty.read() as connection:
        assert differences(connection) == []
    all_data_is_read(empty, tmp_path / "weights")
    work_goes_on(empty)


def test_the_next_schema_is_applied_and_all_data_is_kept(empty: Database, tmp_path: Path) -> None:
    fill_database(empty, tmp_path / "weights")
    scripts = next_schema(tmp_path)
    empty.upgrade(scripts)
    assert empty.schema(scripts).is_current
    with empty.read() as connection:
        lines = connection.exec_driver_sql("SELECT machine, production_line FROM machines ORDER BY id").all()
        ((kind, _, _, column),) = differences(connection)
    assert list(map(tuple, lines)) == [("filler-1", "1"), ("filler-2", "2")]
    assert (kind, column.name) == ("remove_column", "production_line"), "nothing else has changed"
    all_data_is_read(empty, tmp_path / "weights")
    work_goes_on(empty)


def all_data_is_read(database: Database, weights: Path) -> None:
    machines_and_forecasts_are_read(database, weights)
    events_lie_where_they_belong(database)
    enrolment_is_read(database)
    outcomes_are_read(database)
    notifications_are_read(database)
    users_are_read(database)
    credentials_are_read(database)
    (agent,) = MachineStore(database).agents().values()
    assert (agent.skipped, agent.last_skipped and agent.last_skipped.text) == (3, "byte 7: wrong")


def events_lie_where_they_belong(database: Database) -> None:
    if not database.is_sqlite:
        with database.read() as connection:
            found = connection.execute(text("SELECT tableoid::regclass::text, count(*) FROM events GROUP BY 1"))
            assert dict(map(tuple, found)) == {"events_2026_11": 5, "events_flagged": 1}


def users_are_read(database: Database) -> None:
    anna = UserStore(database).get("anna")
    assert (anna.role, anna.sites, anna.must_change) == (Role.OPERATOR, frozenset({"padova"}), False)
    session = SessionStore(database).find("0123456789ab")
    assert session
    assert session.principal().name == "anna"
    (key,) = ApiKeyStore(database).all()
    assert (key.name, key.role, key.sites) == ("andon", Role.VIEWER, None)


def credentials_are_read(database: Database) -> None:
    (one,) = CredentialStore(database).all()
    assert (str(one.machine), one.generation) == ("padova/filler-1", 2)


def machines_and_forecasts_are_read(database: Database, weights: Path) -> None:
    machines, log = MachineStore(database), EventStore(database)
    filler, second = machines.all()
    assert (filler.id, filler.name, filler.time_zone) == (FILLER, "The filler-1", "Europe/Rome")
    agent = machines.agent(filler)
    assert agent
    assert (agent.online, agent.last_seen_at, agent.epoch, agent.spooled, agent.skew_ms) == (
        True,
        NOW,
        EPOCH,
        3,
        -40,
    )
    assert machines.agent(second) is None
    assert [knock.machine for knock in machines.unregistered()] == [MachineId("lyon", "wrapper-9")]
    series = log.series(filler, NOW - DAY, NOW + DAY)
    assert list(series.codes) == [139, 26, 139, 26, 139]
    assert [alarm.flag for alarm in log.page(filler, PageQuery(flagged=True)).alarms] == ["from_the_future"]
    (gap,) = log.gaps(filler, NOW - DAY, NOW)
    assert gap.events == 3
    kept = QuarantineStore(database).page(QuarantineQuery())
    assert [(item.reason, item.machine, item.body) for item in kept] == [
        ("topic", None, b'{"x": 1}'),
        ("bad_code", FILLER, b'{"x": 1}'),
    ]
    assert CatalogueStore(database).entries()[139].text == "Film torn"
    versions = VersionStore(database, WeightsFolder(weights))
    champion = versions.champion()
    assert champion
    assert (champion.name, champion.report, champion.pruned) == ("v1", {"summary": "small"}, False)
    assert versions.load(champion).vocabulary.targets == (139, 26)
    said = ForecastStore(database).of(filler, NOW - DAY, NOW)
    assert [one.probabilities.round(1).tolist() for one in said] == [pytest.approx([0.7, 0.2])] * 2


def enrolment_is_read(database: Database) -> None:
    filler, second = MachineStore(database).all()
    assert (filler.state, second.state) == (MachineState.LIVE, MachineState.LIVE)
    waiting, learned = JobStore(database).newest()
    assert (learned.state, learned.machine) == (JobState.PROMOTED, FILLER)
    assert learned.finished_plant_at
    assert waiting.finished_plant_at is None
    assert (waiting.state, waiting.machine) == (JobState.COLLECTING, second.id)
    (deed,) = AuditStore(database).newest()
    assert (deed.actor, deed.action, deed.subject) == ("api:10.0.0.7", "enrol", "padova/filler-1")
    remembered = MemoryStore(database).get(1).tasks["padova/filler-1"]
    assert (len(remembered.windows), len(remembered.held_out), remembered.offered) == (1, 1, 400)
    assert remembered.frequency == {139: 40, 26: 12}
    exam = HoldoutStore(database).get(FILLER)
    assert exam
    assert (len(exam.windows), exam.base_rate) == (2, {139: 0.3})
    assert HoldoutStore(database).results_by_version(FILLER)[1].average_precision == pytest.approx(0.41)


def outcomes_are_read(database: Database) -> None:
    filler, _ = MachineStore(database).all()
    (scored,) = OutcomeStore(database).page(filler, NOW - DAY, NOW, limit=10)
    assert scored.outcome.occurred.tolist() == [True, False]
    assert scored.spec.codes.tolist() == [139, 26]
    assert np.allclose(scored.spec.thresholds, 0.5)


def notifications_are_read(database: Database) -> None:
    (notice,) = NotificationStore(database).page(NotificationQuery())
    assert (notice.machine, notice.code, notice.text, notice.closed_at) == (FILLER, 139, "Film torn", None)
    (shelf,) = ShelvingStore(database).active(NOW)
    assert (shelf.code, shelf.actor, shelf.reason) == (26, "anna", "film changed")
    (window,) = MaintenanceStore(database).active(NOW)
    assert window.site == "padova"
    (known,) = AcknowledgementStore(database).page(SuppressionQuery())
    assert known.note == "on it"
    (hook,) = WebhookStore(database).all()
    assert (hook.url, hook.enabled) == ("http://127.0.0.1:9/hook", True)
    (delivery,) = DeliveryStore(database).due(NOW, limit=10)
    assert delivery.attempts == 2


def work_goes_on(database: Database) -> None:
    """What was resent is known, what is new is stored, and another machine can be enrolled."""
    filler = MachineStore(database).get(FILLER)
    again = EventRow(filler.row_id, EPOCH, 1, 139, to_us(NOW) - 9 * 3_600_000_000, 0)
    recorded = EventStore(database).commit(EventWrite(to_us(NOW), events=[again, again._replace(seq=100)]))
    assert (recorded.stored, recorded.duplicates, recorded.conflicts) == (1, 1, 0)
    third = enrolled(EnrolmentStore(database), MachineId("padova", "filler-3"))
    assert third.row_id == 3


def test_a_database_of_a_newer_version_is_refused_and_left_alone(empty: Database) -> None:
    empty.upgrade()
    with empty.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9000'")
    with pytest.raises(WrongSchema, match=r"schema 9000.*newer version.*alarmcast admin restore FOLDER"):
        empty.upgrade()
    with empty.read() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one() == "9000"


@pytest.mark.parametrize("numbered", [False, True])
def test_a_database_of_somebody_else_is_refused_and_left_alone(
    empty: Database,
    numbered: bool,  # noqa: FBT001
) -> None:
    with empty.write() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (id INTEGER)")
        if numbered:
            connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    with pytest.raises(WrongSchema, match=r"orders.*not Alarmcast's.*ALARMCAST_DATABASE_URL"):
        empty.upgrade()
    with empty.write() as connection:
        connection.exec_driver_sql("DROP TABLE orders")
    empty.upgrade()


FAILING = """
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{head}"


def upgrade():
    op.add_column("machines", sa.Column("colour", sa.Text(), nullable=True))
    op.create_table("halfway", sa.Column("id", sa.Integer(), nullable=False))
    op.execute("UPDATE machines SET name = 'changed'")
    op.execute("SELECT no_such_column FROM machines")
"""


def test_a_migration_that_breaks_off_leaves_the_old_schema_and_its_data(empty: Database, tmp_path: Path) -> None:
    fill_database(empty, tmp_path / "weights")
    empty.upgrade()
    with pytest.raises(Exception, match="no_such_column"):
        empty.upgrade(next_schema(tmp_path, FAILING))
    with empty.read() as connection:
        assert differences(connection) == []
    assert empty.schema().is_current
    assert MachineStore(empty).get(FILLER).name == "The filler-1"
    machines_and_forecasts_are_read(empty, tmp_path / "weights")


@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
def test_before_a_file_is_changed_one_copy_of_it_is_kept_and_the_log_says_where(
    empty: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill_database(empty, tmp_path / "weights")
    scripts = next_schema(tmp_path)
    (tmp_path / f"{DATABASE}.schema-0000").write_bytes(b"of an upgrade before")
    with caplog.at_level(logging.INFO, logger="service"):
        empty.upgrade(scripts)
    (kept,) = tmp_path.glob(f"{DATABASE}.schema-*")
    assert kept.name == f"{DATABASE}.schema-{INITIAL}"
    assert str(kept) in caplog.text
    with closing(sqlite3.connect(kept)) as old:
        assert old.execute("SELECT version_num FROM alembic_version").fetchone() == (INITIAL,)
        assert old.execute("SELECT count(*) FROM events").fetchone() == (6,)
    caplog.clear()
    empty.upgrade(scripts)
    assert caplog.text == "", "nothing is changed, so nothing is copied"


@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
def test_a_new_database_is_not_copied(empty: Database, tmp_path: Path) -> None:
    empty.upgrade()
    assert list(tmp_path.glob(f"{DATABASE}.schema-*")) == []


@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
def test_a_backup_of_a_newer_version_is_refused_before_it_replaces_anything(
    empty: Database, tmp_path: Path
) -> None:
    fill_database(empty, tmp_path / "weights")
    with empty.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9000'")
    back_up(tmp_path, tmp_path / "backup")
    with pytest.raises(InputRejected, match="newer Alarmcast"):
        check(tmp_path / "backup")
