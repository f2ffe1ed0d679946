"""A word to the other processes that is heard once its transaction is committed, or never."""

import json

from sqlalchemy import Connection, text

from service.messaging.change_event import ChangeEvent

CHANNEL = "alarmcast"
_NOTIFY = text(f"SELECT pg_notify('{CHANNEL}', :body)")


def notify(connection: Connection, signal: ChangeEvent, *, sender: str | None = None) -> None:
    """Tell all processes but the sender; on SQLite there are no others."""
    if connection.dialect.name != "sqlite":
        body = {"from": sender, "kind": signal.kind.value, **signal.body}
        connection.execute(_NOTIFY, {"body": json.dumps(body, separators=(",", ":"))})
