"""The schema that migrations build is the schema the code believes in."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from service.store.engine import Database
from service.store.tables import metadata


def test_migrations_lead_to_exactly_the_tables_of_the_code(database: Database) -> None:
    with database.read() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []


def test_upgrading_twice_changes_nothing(database: Database) -> None:
    database.upgrade()
    database.upgrade()


def test_windows_are_read_from_their_index_alone(database: Database) -> None:
    with database.read() as connection:
        if database.is_sqlite:
            rows = connection.exec_driver_sql(
                "EXPLAIN QUERY PLAN SELECT at_us, code FROM events"
                " WHERE machine_id = 1 AND at_us >= 0 AND at_us < 9 AND flag = 0 ORDER BY at_us, code"
            )
            plan = " ".join(str(row) for row in rows)
            assert "COVERING INDEX ix_events_window" in plan
            assert "TEMP B-TREE" not in plan
        else:
            connection.exec_driver_sql("SET enable_seqscan = off")
            rows = connection.exec_driver_sql(
                "EXPLAIN SELECT at_us, code FROM events"
                " WHERE machine_id = 1 AND at_us >= 0 AND at_us < 9 AND flag = 0 ORDER BY at_us, code"
            )
            plan = " ".join(str(row) for row in rows)
            assert "Index Only Scan using ix_events_window" in plan
            assert "Sort" not in plan
