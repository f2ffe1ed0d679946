"""CSV as a download."""

from collections.abc import Iterable
from typing import Any

from fastapi.responses import StreamingResponse

from service.http.csv_text import csv_chunks
from service.http.problems import responses


class CsvResponse(StreamingResponse):
    """CSV (RFC 4180) in UTF-8, streamed."""

    media_type = "text/csv"


def documented(columns: Iterable[str]) -> dict[int | str, dict[str, Any]]:
    """Return the responses of a route that sends these columns."""
    head = ",".join(columns)
    table = {"schema": {"type": "string"}, "example": f"{head}\r\n"}
    ok = {200: {"description": f"CSV with the columns {head}.", "content": {"text/csv": table}}}
    return ok | responses(404, 422)


def csv_response(columns: tuple[str, ...], rows: Iterable[Iterable[object]], *name: str | None) -> CsvResponse:
    """Return a download; its file name joins the given parts: letters, digits, '-' and '_' only."""
    file = "_".join(part for part in name if part) + ".csv"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return CsvResponse(csv_chunks(columns, rows), headers=headers)
