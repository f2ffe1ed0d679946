"""Whether a machine can be heard."""

from datetime import datetime, timedelta

from service.machines.models import Agent
from wire.enums import ConnectionStatus


def connection_status(
    agent: Agent | None, now: datetime, *, stale_after: timedelta, silent: bool = False
) -> ConnectionStatus:
    """Judge from how its agent was when last heard; ``silent`` if its alarms have stopped against its rhythm."""
    if agent is None:
        return ConnectionStatus.NEVER
    if not agent.online:
        return ConnectionStatus.OFFLINE
    if now - agent.last_seen_at > stale_after:
        return ConnectionStatus.STALE
    return ConnectionStatus.SILENT if silent else ConnectionStatus.ONLINE
