"""Which machines and which span a question is about, or a sentence that says what is wrong with it."""

from datetime import datetime, timedelta

from service.errors import InputRejected, NotFound
from service.machines.models import Machine, MachineReader
from wire.identity import MachineId
from wire.timestamps import EARLIEST


def chosen_machines(machines: MachineReader, site: str | None, machine: str | None) -> list[Machine]:
    """Return one machine, those of a site, or all; a retired one only if it is named."""
    if machine is not None:
        if site is None:
            raise InputRejected("A machine is named together with its site; give site too.")
        return [machines.get(MachineId(site, machine))]
    found = [one for one in machines.all() if site in (None, one.id.site)]
    if site is not None and not found:
        raise NotFound(f"There is no machine at the site {site}.")
    return found


def chosen_span(
    since: datetime | None, until: datetime | None, *, now: datetime, usual: timedelta, longest: timedelta
) -> tuple[datetime, datetime]:
    """Return the span asked for, or the last ``usual`` before its end."""
    end = until or now
    start = since or max(end - usual, EARLIEST)
    if start >= end:
        raise InputRejected("since must be before until.")
    if end - start > longest:
        raise InputRejected(f"Ask for at most {longest.days} days at once.")
    return start, end
