"""Figures: how many alarms people get, in the bands of ISA-18.2, and what stands out."""

from datetime import datetime

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation
from wire.rest.figures import FiguresView
from wire.words import FigureLines


def figures_asked(
    self: object,  # noqa: ARG001 - a method of more than one noun
    *,
    by: FigureLines = FigureLines.MACHINE,
    site: str | None = None,
    machine: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    shift: str | None = None,
) -> Ask:
    """Give the figures of a span, all together and a line for each of what ``by`` says."""
    whose = {"site": site, "machine": machine, "shift": shift}
    return Ask(params={"by": by, "since": since, "until": until, **whose})


class Figures(Noun[S]):
    """``client.figures``."""

    get = operation("GET /v1/figures", FiguresView)(figures_asked)
