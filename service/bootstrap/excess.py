"""Warnings about machines that have had too much of something, within the last day."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from service.core.limits import Excess, ExcessKind, MachineLimits
from service.errors import Unavailable
from service.store.excess import ExcessStore

_RECENT = timedelta(days=1)
_NAMED = 3  # machines that a warning names


def excess_warnings(
    store: ExcessStore, limits: MachineLimits, now: datetime, sees: Callable[[str], bool]
) -> dict[str, str]:
    """Say what was left out of which machines; messages of no machine are everybody's."""
    try:
        found = [one for one in store.since(now - _RECENT) if one.machine is None or sees(one.machine.site)]
    except Unavailable:
        return {}  # that the database is away is said elsewhere
    told: dict[str, str] = {}
    for kind, (about, sentence) in _words(limits).items():
        of_kind = [one for one in found if one.kind is kind]
        if of_kind:
            told[about] = sentence.format(names=_names(of_kind))
    return told


def _words(limits: MachineLimits) -> dict[ExcessKind, tuple[str, str]]:
    gaps = (
        f"More than {limits.gaps:,} gaps of one machine are not kept one by one, and their time counts as not "
        "observed: {names}. Check whether the agent's spool is too small, and who speaks in its name."
    )
    epochs = (
        f"A machine may have {limits.epochs:,} spools and history files. Events of further ones are neither "
        "stored nor acked, so that their agents keep them: {names}. See that the agent keeps its data folder; "
        "if the old spools are not needed, erase the machine and enrol it again."
    )
    quarantine = (
        f"The quarantine keeps {limits.quarantined:,} items or {limits.quarantined_bytes // 1_000_000} MB of one "
        "machine. What else is refused is only counted: {names}. Correct the sender."
    )
    unenrolled = (
        f"Of the machines that publish without being enrolled only the newest {limits.unenrolled:,} are listed; "
        "others were left out: {names}. Find who publishes, and let only known machines use the broker: see "
        "broker_dynamic_security."
    )
    return {
        ExcessKind.GAPS: ("too_many_gaps", gaps),
        ExcessKind.EPOCHS: ("too_many_epochs", epochs),
        ExcessKind.QUARANTINE: ("quarantine_full", quarantine),
        ExcessKind.UNENROLLED: ("too_many_unenrolled", unenrolled),
    }


def _names(found: Sequence[Excess]) -> str:
    named = [
        f"{one.machine or 'no known machine'} ({one.items:,} since {one.since:%Y-%m-%d})" for one in found[:_NAMED]
    ]
    more = len(found) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])
