"""Alarm metrics: alarm rates in the bands of ISA-18.2, floods, chattering and standing alarms."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.enums import AlarmMetricsGrouping
from wire.rest.alarm_metrics import AlarmMetricsReport


def alarm_metrics_request(
    self: object,  # noqa: ARG001 - a method of more than one resource
    *,
    by: AlarmMetricsGrouping = AlarmMetricsGrouping.MACHINE,
    site: str | None = None,
    machine: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    shift: str | None = None,
) -> RequestSpec:
    """Return the alarm metrics of a time span: a total, and one row per group of ``by``."""
    filters = {"site": site, "machine": machine, "shift": shift}
    return RequestSpec(params={"by": by, "since": since, "until": until, **filters})


class AlarmMetrics(Resource[TransportT]):
    """``client.alarm_metrics``."""

    get = operation("GET /v1/alarm-metrics", AlarmMetricsReport)(alarm_metrics_request)
