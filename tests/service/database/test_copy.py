"""A store copied from one database into another: the same rows, whatever kinds of databases they are."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, delete, func, insert, select, text, update

from service.database import schema
from service.database.backup import DATABASE
from service.database.copy import TABLES, CopyResult, CopyStage, copy_database
from service.database.copy_endpoint import open_endpoint
from service.database.engine import Database
from service.database.locks import WriterLock
from service.database.tables import catalogue, epochs, events, machines, quarantine, weights
from service.errors import Conflict, DatabaseInUse, InputRejected, ServiceError, Unavailable, WrongSchema
from tests.conftest import free_port
from tests.support import sample_database

Rows = dict[str, set[tuple[Any, ...]]]
NewPostgres = Callable[[], str]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A folder with a SQLite store that has something of everything."""
    folder = tmp_path / "data"
    folder.mkdir()
    with using(f"sqlite:///{folder / DATABASE}") as database:
        fill(database, folder)
    return folder


@pytest.fixture
def new_postgres(postgresql: str) -> NewPostgres:
    """Makes empty databases in the cluster."""

    def make() -> str:
        name = f"copy_{uuid4().hex}"
        with using(postgresql) as database, database.read() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text(f"CREATE DATABASE {name}"))
        return postgresql.rpartition("/")[0] + f"/{name}"

    return make


@contextmanager
def using(url: str) -> Iterator[Database]:
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


def fill(database: Database, folder: Path) -> None:
    with database.write() as connection:
        sample_database.fill(connection, folder / "weights")
        schema.migrate(connection)
        connection.execute(insert(events), [event(seq) for seq in range(1000, 13_000)])


def event(seq: int) -> dict[str, int]:
    moments = {"at_us": seq * 10**9, "received_us": 1}
    return {"epoch_id": 1, "seq": seq, "machine_id": 1, "code": 7, "flag": 0, **moments}


def copied(source: str | Path, target: str | Path) -> CopyResult:
    with (
        open_endpoint(str(source), lock_timeout_s=0.5) as original,
        open_endpoint(str(target), lock_timeout_s=0.5) as copy,
    ):
        return copy_database(original, copy, on_progress=lambda *_: None)


def url_of(named: str | Path) -> str:
    return named if isinstance(named, str) else f"sqlite:///{named / DATABASE}"


def everything(named: str | Path) -> Rows:
    with using(url_of(named)) as database, database.read() as connection:
        tables = {table.name: connection.execute(select(table)).all() for table in TABLES}
    return {name: {tuple(row) for row in rows} for name, rows in tables.items()}


def change(named: str | Path, statement: Any) -> None:
    with using(url_of(named)) as database, database.write() as connection:
        connection.execute(statement)


@pytest.mark.parametrize("kinds", ["sqlite to postgresql", "sqlite to sqlite", "postgresql and back"])
def test_every_row_of_every_table_arrives_as_it_was(
    filled: Path, tmp_path: Path, new_postgres: NewPostgres, kinds: str
) -> None:
    target: str | Path = tmp_path / "new" if kinds == "sqlite to sqlite" else new_postgres()
    done = copied(filled, target)
    expected = everything(filled)
    assert done == CopyResult(sum(map(len, expected.values())), resumed=0, lost=())
    assert everything(target) == expected
    if kinds == "postgresql and back":
        copied(target, tmp_path / "back")
        assert everything(tmp_path / "back") == expected
    with using(url_of(target)) as database:
        assert database.schema().is_current, "and no trace of the copy is left"


def test_weights_become_rows_in_postgresql_and_files_again_beside_sqlite(
    filled: Path, tmp_path: Path, new_postgres: NewPostgres
) -> None:
    target = new_postgres()
    [file] = (filled / "weights").iterdir()
    copied(filled, target)
    with using(target) as database, database.read() as connection:
        assert connection.execute(select(weights)).all() == [(file.stem, file.read_bytes())]
    copied(target, tmp_path / "back")
    assert (tmp_path / "back" / "weights" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("damage", ["lost", "changed"])
def test_lost_weights_are_told_and_no_obstacle(filled: Path, tmp_path: Path, damage: str) -> None:
    [file] = (filled / "weights").iterdir()
    file.unlink() if damage == "lost" else file.write_bytes(b"other")
    assert copied(filled, tmp_path / "new").lost == ("v1",)


def test_the_heights_of_epochs_are_not_believed_of_sqlite_which_does_not_keep_them(
    filled: Path, new_postgres: NewPostgres
) -> None:
    change(filled, update(epochs).values(last_seq=6))
    first, second = new_postgres(), new_postgres()
    copied(filled, first)
    assert heights(first) == [None], "there are higher ones, which would be stored twice"
    change(first, update(epochs).values(last_seq=12_999))
    copied(first, second)
    assert heights(second) == [12_999]


def heights(url: str) -> list[int | None]:
    with using(url) as database, database.read() as connection:
        return list(connection.execute(select(epochs.c.last_seq)).scalars())


def test_postgresql_numbers_new_rows_behind_the_copied_ones(filled: Path, new_postgres: NewPostgres) -> None:
    target = new_postgres()
    copied(filled, target)
    with using(target) as database, database.write() as connection:
        for table in TABLES:
            if (column := table.autoincrement_column) is not None:
                last = connection.execute(select(func.max(column))).scalar()
                assert next_number(connection, table.name, column.name) == (last or 0) + 1


def next_number(connection: Connection, table: str, column: str) -> int:
    return int(connection.execute(select(func.nextval(func.pg_get_serial_sequence(table, column)))).scalar_one())


class PowerCut(Exception):
    pass


@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
def test_a_copy_that_was_cut_off_is_no_database_yet_and_goes_on_where_it_was(
    filled: Path, tmp_path: Path, new_postgres: NewPostgres, to: str
) -> None:
    target: str | Path = new_postgres() if to == "postgresql" else tmp_path / "new"

    def cut(stage: CopyStage, table: str, rows: int, of: int) -> None:
        if (stage, table) == (CopyStage.COPYING, "events") and 0 < rows < of:
            raise PowerCut

    with open_endpoint(str(filled)) as original, open_endpoint(str(target)) as copy, pytest.raises(PowerCut):
        copy_database(original, copy, on_progress=cut)
    with using(url_of(target)) as database, pytest.raises(WrongSchema, match="begun and has not ended"):
        database.upgrade()
    done = copied(filled, target)
    assert 10_000 <= done.resumed < done.rows
    assert everything(target) == everything(filled)


def test_a_copy_of_another_database_does_not_go_on_in_a_begun_one(filled: Path, tmp_path: Path) -> None:
    def cut(*_: object) -> None:
        raise PowerCut

    copied(filled, tmp_path / "other")
    with (
        open_endpoint(str(filled)) as original,
        open_endpoint(str(tmp_path / "new")) as copy,
        pytest.raises(PowerCut),
    ):
        copy_database(original, copy, on_progress=cut)
    with pytest.raises(Conflict, match="the beginning of a copy of"):
        copied(tmp_path / "other", tmp_path / "new")


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        (delete(events).where(events.c.seq == 1000), "events .* rows became"),
        (update(catalogue).values(text="Film tom"), "catalogue .2 rows, not all the same"),
        (update(epochs).values(epoch=uuid4()), "epochs .1 rows, not all the same"),
        (update(quarantine).values(body=b"\x00\xff"), "quarantine .2 rows, not all the same"),
    ],
)
def test_a_difference_is_told_by_table_and_the_copy_stays_unusable(
    filled: Path, new_postgres: NewPostgres, statement: Any, difference: str
) -> None:
    target = new_postgres()

    meddled: list[str] = []

    def meddle(stage: CopyStage, table: str, _rows: int, _of: int) -> None:
        if stage is CopyStage.CHECKING and not meddled:
            meddled.append(table)
            change(target, statement)

    with (
        open_endpoint(str(filled)) as original,
        open_endpoint(target) as copy,
        pytest.raises(Conflict, match=f"differs from its source in {difference}"),
    ):
        copy_database(original, copy, on_progress=meddle)
    with using(target) as database, pytest.raises(WrongSchema, match="has not ended"):
        database.upgrade()


def test_a_database_with_rows_is_not_copied_into(filled: Path, new_postgres: NewPostgres) -> None:
    target = new_postgres()
    with using(target) as database:
        database.upgrade()
    change(target, insert(catalogue).values(code=1, text="Kept", severity="low", target=True))
    with pytest.raises(Conflict, match="rows in catalogue"):
        copied(filled, target)
    change(target, delete(catalogue))
    assert copied(filled, target).rows, "a schema without rows is as good as none"


def test_a_database_in_use_is_not_copied(filled: Path, tmp_path: Path, new_postgres: NewPostgres) -> None:
    target = new_postgres()
    for folder in (filled, tmp_path / "new"):
        with WriterLock(folder / "alarmcast.lock"):
            refused(DatabaseInUse, "stop that one first", filled, tmp_path / "new")
    with using(target) as service, service.read() as connection:
        connection.execute(text("SELECT 1"))
        refused(DatabaseInUse, r"others are connected as the same user \(1\)", filled, target)
    assert copied(filled, target).rows


def test_what_is_no_pair_of_databases_is_refused_in_a_sentence(
    filled: Path, tmp_path: Path, new_postgres: NewPostgres
) -> None:
    postgres, nobody = new_postgres(), f"postgresql://alarmcast:secret@127.0.0.1:{free_port()}/alarmcast"
    refused(InputRejected, "named twice", filled, filled / DATABASE)
    refused(InputRejected, "Both files are in", filled, filled / "other.sqlite3")
    refused(InputRejected, "There is no database", tmp_path / "nowhere", tmp_path / "new")
    refused(InputRejected, "not a database name", "postgresql://a:b/c", postgres)
    refused(InputRejected, "database URL", filled, "mysql://x/y")
    refused(WrongSchema, "schema none", postgres, tmp_path / "new")
    with using(postgres) as database:
        database.upgrade()
    refused(DatabaseInUse, "both FROM and TO", postgres, postgres.replace("127.0.0.1", "localhost"))
    assert "secret" not in refused(Unavailable, "cannot be reached", filled, nobody)


def refused(kind: type[ServiceError], words: str, source: str | Path, target: str | Path) -> str:
    with pytest.raises(kind, match=words) as error:
        copied(source, target)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_older_schema_is_brought_up_by_its_own_service_first(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "SCRIPTS", sample_database.next_schema(tmp_path))
    refused(WrongSchema, "alarmcast migrate", filled, tmp_path / "new")


def test_what_postgresql_cannot_keep_is_told_with_its_place(filled: Path, new_postgres: NewPostgres) -> None:
    with closing(sqlite3.connect(filled / DATABASE)) as database, database:
        database.execute("UPDATE machines SET name = char(65, 0, 66)")
    target = new_postgres()
    assert "A\x00B" not in refused(InputRejected, r"2 rows of machines from \(1,\) on.*NUL", filled, target)
    change(filled, update(machines).values(name="mended"))
    assert copied(filled, target).rows
