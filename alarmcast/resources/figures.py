"""Figures: how many alarms people get, in the bands of ISA-18.2, and what stands out."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.enums import AlarmMetricsGrouping
from wire.rest.alarm_metrics import AlarmMetricsReport


def figures_asked(
    self: object,  # noqa: ARG001 - a method of more than one noun
    *,
    by: AlarmMetricsGrouping = AlarmMetricsGrouping.MACHINE,
    site: str | None = None,
    machine: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    shift: str | None = None,
) -> RequestSpec:
    """Give the figures of a span, all together and a line for each of what ``by`` says."""
    whose = {"site": site, "machine": machine, "shift": shift}
    return RequestSpec(params={"by": by, "since": since, "until": until, **whose})


class Figures(Resource[TransportT]):
    """``client.figures``."""

    get = operation("GET /v1/figures", AlarmMetricsReport)(figures_asked)
