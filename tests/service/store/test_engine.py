"""The doors to a database: who cannot be let in is told so, and may come again."""

from contextlib import ExitStack

import pytest

from service.errors import Unavailable
from service.store.engine import Database


def take_all(database: Database) -> None:
    with ExitStack() as held:
        for _ in range(100):
            held.enter_context(database.write())


def test_a_database_all_of_whose_connections_are_in_use_is_worth_another_try(database: Database) -> None:
    hasty = Database(database.url, patience=1)
    with pytest.raises(Unavailable, match="All connections to the database are in use"):
        take_all(hasty)
    with hasty.write():
        hasty.ping()
    hasty.close()
