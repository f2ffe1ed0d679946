"""The doors to a database: who cannot be let in is told so, and may come again."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, make_url

from service.broker_access.store import CredentialStore
from service.database.copy_endpoint import open_endpoint
from service.database.dialect import copy_rows, write_alone
from service.database.engine import BUSY_TIMEOUT_S, Database
from service.database.tables import catalogue
from service.errors import Unavailable
from tests.conftest import wait_until

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def ask(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT 1")


def store(connection: Connection) -> None:
    copy_rows(connection, catalogue, ("code", "text", "severity", "target"), [(1, "Film torn", "low", True)])


def take_all(database: Database) -> None:
    with ExitStack() as held:
        for _ in range(100):
            held.enter_context(database.write())


def test_a_database_all_of_whose_connections_are_in_use_is_worth_another_try(database: Database) -> None:
    hasty = Database(database.url, busy_timeout_s=1)
    with pytest.raises(Unavailable, match="All database connections are in use"):
        take_all(hasty)
    with hasty.write():
        hasty.ping()
    hasty.close()


@on_postgresql
def test_both_ends_notice_within_half_a_minute_that_the_other_ones_host_is_lost(database: Database) -> None:
    driver = database.raw_connection()
    with psycopg.connect(database.url.replace("+psycopg", "")) as usual:
        assert _theirs(usual)["tcp_user_timeout"] == "0", "or this proves nothing"
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
    with driver, socket.socket(fileno=os.dup(driver.fileno())) as ours:
        assert [ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names] == [10, 5, 3, 30_000]
        assert _theirs(driver) == {
            "tcp_keepalives_idle": "10",
            "tcp_keepalives_interval": "5",
            "tcp_keepalives_count": "3",
            "tcp_user_timeout": "30000",
        }


def _theirs(driver: "psycopg.Connection[Any]") -> dict[str, str]:
    shown = driver.execute("SELECT name, current_setting(name) FROM pg_settings WHERE name LIKE 'tcp\\_%'")
    return dict(shown.fetchall())


@on_postgresql
@pytest.mark.parametrize("next_step", [ask, store])
def test_who_stalls_in_the_middle_of_a_transaction_is_cut_off_and_may_try_again(
    database: Database, next_step: Callable[[Connection], None]
) -> None:
    stopped = Database(database.url, idle_timeout_s=1)

    def stall() -> None:
        with stopped.write() as connection:
            write_alone(connection, catalogue)
            with database.write() as other:
                write_alone(other, catalogue)  # had to wait for the first, but not for ever
            next_step(connection)

    with pytest.raises(Unavailable):
        stall()
    with stopped.write() as connection:
        write_alone(connection, catalogue)
        store(connection)
    stopped.close()


@on_postgresql
def test_who_has_reason_to_idle_is_left_alone(database: Database) -> None:
    stalling = Database(database.url, idle_timeout_s=1)
    with stalling.write(no_timeout=True) as connection:
        assert _idles(connection) == "0"
    with stalling.write() as connection:
        assert _idles(connection) == "1s", "it was for that transaction alone"
    with CredentialStore(stalling).exclusive():
        wait_until(lambda: _idle_seconds(database) > 1.5, "somebody has idled for longer than is usual")
    stalling.close()
    with open_endpoint(database.url) as side, side.database.read() as connection:
        assert _idles(connection) == "0", "a copy reads for as long as the other end writes"


@on_postgresql
def test_nobody_waits_for_a_lock_for_ever(database: Database) -> None:
    waiting = Database(database.url, lock_timeout_s=1)
    with database.write(no_timeout=True) as holder:  # who may hold it for as long as they like
        write_alone(holder, catalogue)
        with pytest.raises(Unavailable, match="lock timeout"), waiting.write() as connection:
            write_alone(connection, catalogue)
    with waiting.write() as connection:
        write_alone(connection, catalogue)
        store(connection)
    waiting.close()


@on_postgresql
def test_who_has_reason_to_wait_for_a_lock_waits_longer(database: Database) -> None:
    with database.write() as connection:
        assert _waits(connection) == "1min"
    with database.write(no_timeout=True) as connection:
        assert _waits(connection) == "10min", "a migration waits for readers, and others for a migration"
    with open_endpoint(database.url) as side, side.database.read() as connection:
        assert _waits(connection) == "10min"


def _waits(connection: Connection) -> str:
    return str(connection.exec_driver_sql("SHOW lock_timeout").scalar_one())


def _idles(connection: Connection) -> str:
    return str(connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar_one())


def _idle_seconds(database: Database) -> float:
    idle = (
        "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - state_change)), 0) FROM pg_stat_activity"
        " WHERE state = 'idle in transaction'"
    )
    with database.read() as connection:
        return float(connection.exec_driver_sql(idle).scalar_one())


@on_sqlite
def test_a_log_that_readers_kept_growing_is_emptied_once_they_pause(database: Database) -> None:
    wal = Path(f"{make_url(database.url).database}-wal")
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE bulk (body BLOB)")
        connection.exec_driver_sql("INSERT INTO bulk VALUES (zeroblob(5000)), (zeroblob(5000))")
    with database.read() as reader:
        rows = reader.exec_driver_sql("SELECT rowid FROM bulk")
        rows.fetchone()  # the statement has begun, and sees this moment until it ends
        for _ in range(20):
            with database.write() as connection:
                connection.exec_driver_sql("INSERT INTO bulk VALUES (zeroblob(500000))")
        assert wal.stat().st_size > 9_000_000
        assert not database.truncate_wal(above=1_000_000)
        rows.close()
    assert database.truncate_wal(above=1_000_000)
    assert wal.stat().st_size == 0
    with database.write() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 1000 * BUSY_TIMEOUT_S
    assert not database.truncate_wal()


@on_sqlite
def test_a_log_is_emptied_although_readers_overlap_all_the_time(database: Database) -> None:
    wal = Path(f"{make_url(database.url).database}-wal")
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE bulk (body BLOB)")
    stop = threading.Event()
    slow = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
        " SELECT count(*) FROM n, (SELECT count(*) FROM bulk)"
    )

    def read() -> None:
        while not stop.is_set():
            with database.read() as reader:
                reader.exec_driver_sql(slow).fetchone()

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(10):
            with database.write() as connection:
                connection.exec_driver_sql("INSERT INTO bulk VALUES (zeroblob(500000))")
        assert database.truncate_wal(above=1_000_000)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert wal.stat().st_size == 0


@on_sqlite
def test_the_caches_of_all_readers_together_stay_small(database: Database) -> None:
    with database.read() as reader, database.write() as writer:
        kilobytes = [-one.exec_driver_sql("PRAGMA cache_size").scalar_one() for one in (reader, writer)]
    assert 20 * kilobytes[0] <= 100_000
    assert kilobytes[1] > kilobytes[0]
