"""What could not be taken, as it is looked at: in pages, by reason, one by one."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from service.http.principal import Sites
from wire.identity import MachineId


class QuarantinedItem(NamedTuple):
    """One message or event that was refused; ``body`` is whole."""

    id: int
    received_at: datetime
    machine: MachineId | None
    topic: str
    reason: str
    detail: str
    sha256: str
    body: bytes


@dataclass(frozen=True)
class QuarantineQuery:
    """Which items are asked for, newest first."""

    limit: int = 100
    before: int | None = None
    reason: str | None = None
    machine: MachineId | None = None
    sites: Sites = None  # only of these; of every site unless given


class ReasonCount(NamedTuple):
    """How many items were refused for one reason, and when the last was."""

    reason: str
    items: int
    last_at: datetime


class QuarantineReader(Protocol):
    """What was refused."""

    def page(self, query: QuarantineQuery) -> list[QuarantinedItem]: ...
    def get(self, number: int) -> QuarantinedItem: ...
