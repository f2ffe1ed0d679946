"""Empty databases with the current schema, copied from a template that is migrated once per process."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

import psycopg
from sqlalchemy.engine import make_url

from service.database.engine import Database

_TEMPLATE = "alarmcast_template"
_numbers = count(1)


@cache
def sqlite_template() -> Path:
    """Return a migrated SQLite file that nothing writes to."""
    file = Path(mkdtemp(prefix="alarmcast-template-")) / "alarmcast.sqlite3"
    _migrate(f"sqlite:///{file}")
    return file


def new_sqlite(file: Path) -> str:
    """Put an empty database with the current schema into a file, and return its URL."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(sqlite_template(), file)
    file.chmod(0o600)
    return f"sqlite:///{file}"


@contextmanager
def new_postgresql(cluster: str, *, migrated: bool = True) -> Iterator[str]:
    """Create a database in a cluster, empty or with the current schema, and yield its URL."""
    name = f"alarmcast_{next(_numbers)}"
    template = _postgresql_template(cluster) if migrated else "template1"
    _execute(cluster, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    try:
        yield _url(cluster, name)
    finally:
        _execute(cluster, f"DROP DATABASE {name} WITH (FORCE)")


@cache
def _postgresql_template(cluster: str) -> str:
    _execute(cluster, f"CREATE DATABASE {_TEMPLATE}")
    _migrate(_url(cluster, _TEMPLATE))
    return _TEMPLATE


def _migrate(url: str) -> None:
    database = Database(url)
    database.upgrade()
    database.close()


def _url(cluster: str, name: str) -> str:
    return make_url(cluster).set(database=name).render_as_string(hide_password=False)


def _execute(cluster: str, statement: str) -> None:
    with psycopg.connect(cluster.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement.encode())
