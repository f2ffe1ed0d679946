"""CSV that is safe to open in a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice

_ROWS_PER_CHUNK = 500
# Text that starts with one of these may be read as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def escape_formula(text: str) -> str:
    """Return the text with an apostrophe before it if a spreadsheet would read it as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def csv_chunks(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield CSV (RFC 4180) with a header, some hundred rows at a time; formulas are escaped."""
    remaining = iter(rows)
    chunk: list[Iterable[object]] = [columns]
    while chunk:
        buffer = io.StringIO()
        writer = csv.writer(buffer)
        for row in chunk:
            writer.writerow([escape_formula(cell) if isinstance(cell, str) else cell for cell in row])
        yield buffer.getvalue()
        chunk = list(islice(remaining, _ROWS_PER_CHUNK))
