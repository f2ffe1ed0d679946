"""Whether a machine can be heard."""

from datetime import datetime, timedelta

from service.core.machine import Agent
from wire.words import Presence


def presence(agent: Agent | None, now: datetime, *, stale_after: timedelta, silent: bool = False) -> Presence:
    """Judge from how its agent was when last heard; ``silent`` if its alarms have stopped against its rhythm."""
    if agent is None:
        return Presence.NEVER
    if not agent.online:
        return Presence.OFFLINE
    if now - agent.heard_at > stale_after:
        return Presence.STALE
    return Presence.SILENT if silent else Presence.ONLINE
