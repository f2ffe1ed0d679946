"""The schema that migrations build is the schema the code believes in."""

import pytest

from service.database.engine import Database
from tests.service.database.schema_diff import differences


def test_migrations_lead_to_exactly_the_tables_of_the_code(database: Database) -> None:
    with database.read() as connection:
        assert differences(connection) == []


def test_upgrading_twice_changes_nothing(database: Database) -> None:
    database.upgrade()
    database.upgrade()


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
