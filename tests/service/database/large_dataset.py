"""Two million events of forty machines over thirteen months, made by PostgreSQL itself."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
from sqlalchemy import text
from sqlalchemy.engine import make_url

from service.database import partitions
from service.database.engine import Database
from service.database.partitions import Month
from wire.timestamps import to_us

FIRST, LAST = datetime(2025, 10, 20, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC)
MACHINES, EACH = 40, 50_000
FLAGGED_EACH = 25  # enough in all that reading them by index is worth it
STEP = (LAST - FIRST) / EACH
MONTHS = partitions.months_of(to_us(FIRST + timedelta(days=day)) for day in range((LAST - FIRST).days))
_MACHINES = (
    (
        "INSERT INTO machines (id, site, machine, name, time_zone, registered_us, state)"
        " SELECT m, 'padova', 'filler-' || m, 'Filler', 'UTC', 0, 'live' FROM generate_series(1, {machines}) m"
    ),
    (
        "INSERT INTO epochs (id, machine_id, epoch, last_seq)"
        " SELECT m, m, md5(m::text)::uuid, {each} + {flagged} FROM generate_series(1, {machines}) m"
    ),
    (
        "INSERT INTO gaps (epoch_id, first_seq, last_seq, machine_id, first_us, last_us, reason, received_us)"
        " SELECT m, g * 1000, g * 1000 + 9, m, {first} + g * 1000 * {step}, {first} + (g * 1000 + 9) * {step},"
        " 'spool_full', 0 FROM generate_series(1, {machines}) m, generate_series(1, 40::bigint) g"
    ),
    (
        "INSERT INTO events SELECT m, {each} + f, m, f, {last} + f * 86400000000, {last}, 1"
        " FROM generate_series(1, {machines}) m, generate_series(1, {flagged}) f"
    ),
)
# Filled in the order of time, as rows arrive, and before it is attached, which gives it the indexes of the others:
# they are built faster over rows.
_MONTH = (
    "CREATE TABLE {table} (LIKE events_in_time)",
    (
        "INSERT INTO {table} SELECT m, i + 1, m, (i * 7919 + m) % 150, {first} + i * {step}, {last}, 0"
        " FROM generate_series({start}::bigint, {end} - 1) i, LATERAL generate_series(1, {machines} + 0 * i) m"
    ),
    "ALTER TABLE events_in_time ATTACH PARTITION {table} FOR VALUES FROM ({since}) TO ({until})",
)


def at(number: int) -> datetime:
    """Return when each machine raises its alarm with a number."""
    return FIRST + (number - 1) * STEP


def fill(database: Database) -> None:
    """Fill an empty database, and let PostgreSQL look after its tables as it does by itself in time."""
    database.upgrade()
    names = {
        "machines": MACHINES, "each": EACH, "flagged": FLAGGED_EACH,
        "first": to_us(FIRST), "last": to_us(LAST), "step": _micros(STEP),
    }  # fmt: skip
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda month: _fill_month(database, month, names), sorted(MONTHS)))
        with database.write() as connection:
            partitions.create_months(connection, MONTHS)
            for statement in _MACHINES:
                connection.execute(text(statement.format(**names)))
        others = "gaps, machines, epochs, events_flagged"
        list(both.map(lambda tables: _look_after(database, tables), [*(month.table for month in MONTHS), others]))


def _fill_month(database: Database, month: Month, names: dict[str, int]) -> None:
    start, end = (min(max(0, -((FIRST - edge) // STEP)), EACH) for edge in (month.start, month.next.start))
    bounds = {"start": start, "end": end, "since": to_us(month.start), "until": to_us(month.next.start)}
    with _at_once(database) as connection:
        for statement in _MONTH:
            connection.execute(statement.format(table=month.table, **bounds, **names).encode())


def _look_after(database: Database, tables: str) -> None:
    with _at_once(database) as connection:
        connection.execute(f"VACUUM (ANALYZE) {tables}".encode())


def _at_once(database: Database) -> psycopg.Connection[tuple[object, ...]]:
    url = make_url(database.url).set(drivername="postgresql")
    return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
