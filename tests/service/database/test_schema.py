"""The schema that migrations build is the schema the code believes in."""

import pytest
from sqlalchemy import insert, inspect, select

from service.database.engine import Database
from service.database.tables import catalogue
from tests.service.database.schema_diff import differences


def test_migrations_lead_to_exactly_the_tables_of_the_code(database: Database) -> None:
    with database.read() as connection:
        assert differences(connection) == []


def test_upgrading_twice_changes_nothing(database: Database) -> None:
    with database.write() as connection:
        connection.execute(insert(catalogue).values(code=139, text="Film torn", severity="high", target=True))
    before = _definition(database)
    database.upgrade()
    assert _definition(database) == before
    with database.read() as connection:
        assert connection.execute(select(catalogue.c.text)).scalars().all() == ["Film torn"]


def _definition(database: Database) -> dict[str, object]:
    """Return columns, keys, constraints and indexes of every table, and the schema's revision."""
    with database.read() as connection:
        revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
        found = inspect(connection)
        return {"revision": revision} | {
            name: [
                [(column["name"], str(column["type"]), column["nullable"]) for column in found.get_columns(name)],
                found.get_pk_constraint(name),
                found.get_foreign_keys(name),
                found.get_unique_constraints(name),
                found.get_check_constraints(name),
                [(index["name"], index["column_names"], index["unique"]) for index in found.get_indexes(name)],
            ]
            for name in found.get_table_names()
        }


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_windows_are_read_from_their_index_alone(database: Database) -> None:
    with database.read() as connection:
        rows = connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT at_us, code FROM events"
            " WHERE machine_id = 1 AND at_us >= 0 AND at_us < 9 AND flag = 0 ORDER BY at_us, code"
        )
        plan = " ".join(str(row) for row in rows)
    assert "COVERING INDEX ix_events_window" in plan
    assert "TEMP B-TREE" not in plan
