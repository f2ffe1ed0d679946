"""NOTIFY inside a transaction: received by other processes once it is committed, or never."""

import json

from sqlalchemy import Connection, text

from service.messaging.bus import Change
from service.messaging.change_codec import to_body

CHANNEL = "alarmcast"
_NOTIFY = text(f"SELECT pg_notify('{CHANNEL}', :body)")


def notify(connection: Connection, change: Change, *, sender: str | None = None) -> None:
    """Send a change to all processes but the sender; on SQLite there are no others."""
    if connection.dialect.name != "sqlite":
        body = {"from": sender, **to_body(change)}
        connection.execute(_NOTIFY, {"body": json.dumps(body, separators=(",", ":"))})
