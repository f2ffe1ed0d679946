"""The memory: what replay keeps of every machine and every label."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation
from wire.rest.memory import MemoryView


class Memory(Noun[S]):
    """``client.memory``."""

    @operation("GET /v1/memory", MemoryView)
    def get(self, *, version: str | None = None) -> Ask:
        """Return what a version, or the one that serves, remembers by machine and by label, and its balance."""
        return Ask(params={"version": version})
