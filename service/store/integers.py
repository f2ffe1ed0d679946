"""Answers of many numbers, read in pieces into one array: as objects they would take ten times the memory."""

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, TextClause

_ROWS = 5_000  # that are objects at the same time


def integers(connection: Connection, query: TextClause, values: dict[str, Any], columns: int) -> NDArray[np.int64]:
    """Return an answer of whole numbers as an array with a row for each row."""
    found = connection.execute(query, values, execution_options={"stream_results": True, "max_row_buffer": _ROWS})
    pieces = [np.fromiter(chain.from_iterable(rows), dtype=np.int64) for rows in found.partitions(_ROWS)]
    table = np.concatenate(pieces) if pieces else np.array([], dtype=np.int64)
    return table.reshape(-1, columns)
