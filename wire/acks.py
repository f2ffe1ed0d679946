"""The service's word that events are committed: the only thing that lets an agent forget them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from pydantic import Field

from wire.events import Instance, SeqRange, WireModel
from wire.timestamps import UtcDatetime

# Of any size a sequence number may have, so many ranges stay below the contract's 64,000 bytes.
MAX_RANGES = 1500


class Ack(WireModel):
    """Exactly what is committed (stored, duplicate or quarantined), as inclusive ranges."""

    added: ClassVar[tuple[str, ...]] = ("instance", "reused")

    epoch: UUID
    seqs: list[SeqRange] = Field(description="Inclusive ranges, ascending, not touching each other.")
    now: UtcDatetime = Field(description="The service's plant time, for the agent's estimate of its clock skew.")
    instance: Instance | None = Field(
        default=None,
        description="Who sent these events; an ack for another process of the same spool is not ours.",
    )
    reused: bool = Field(
        default=False,
        description="Some of these numbers were used before for other events: the spool was copied or restored. "
        "The events are stored; the agent begins a new epoch.",
    )


def to_ranges(seqs: list[int]) -> list[tuple[int, int]]:
    """Return numbers as inclusive ranges: a single one where they follow each other, as they nearly always do."""
    if seqs and seqs == list(range(seqs[0], seqs[0] + len(seqs))):
        return [(seqs[0], seqs[-1])]
    return [(seq, seq) for seq in seqs]


def merge_ranges(seqs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge inclusive ranges, in any order and overlapping or not, into ascending ones that do not touch.

    Ranges are never expanded: a gap may name more numbers than there is memory.
    """
    folded: list[tuple[int, int]] = []
    for first, last in sorted(seqs):
        if folded and first <= folded[-1][1] + 1:
            folded[-1] = (folded[-1][0], max(folded[-1][1], last))
        else:
            folded.append((first, last))
    return folded


def acks(
    epoch: UUID,
    seqs: Iterable[tuple[int, int]],
    now: datetime,
    *,
    instance: str | None = None,
    reused: bool = False,
) -> Iterator[Ack]:
    """Yield as few acks as name all of these ranges, each small enough for one message."""
    folded = merge_ranges(seqs)
    for first in range(0, max(len(folded), 1), MAX_RANGES):
        part = folded[first : first + MAX_RANGES]
        yield Ack(epoch=epoch, seqs=part, now=now, instance=instance, reused=reused)
