"""The memory: what replay keeps of every machine and every label."""

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.rest.memory import MemoryView


class Memory(Resource[TransportT]):
    """``client.memory``."""

    @operation("GET /v1/memory", MemoryView)
    def get(self, *, version: str | None = None) -> RequestSpec:
        """Return what a version, or the one that serves, remembers by machine and by label, and its balance."""
        return RequestSpec(params={"version": version})
