"""Exports: CSV for spreadsheets and reports, streamed."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, download
from alarmcast.requests import RequestSpec
from alarmcast.resources.alarm_metrics import alarm_metrics_request


class Exports(Resource[TransportT]):
    """``client.exports``; each yields the bytes of a file."""

    @download("/v1/alarms.csv")
    def alarms(
        self,
        *,
        site: str | None = None,
        machine: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        code: int | None = None,
    ) -> RequestSpec:
        """Yield every stored alarm by machine and time, including flagged ones."""
        span = {"since": since, "until": until}
        return RequestSpec(params={"site": site, "machine": machine, **span, "code": code})

    top = download("/v1/alarm-metrics/top.csv")(alarm_metrics_request)
    rows = download("/v1/alarm-metrics/rows.csv")(alarm_metrics_request)
    floods = download("/v1/alarm-metrics/floods.csv")(alarm_metrics_request)
    chatter = download("/v1/alarm-metrics/chatter.csv")(alarm_metrics_request)
    standing = download("/v1/alarm-metrics/standing.csv")(alarm_metrics_request)
    stale = download("/v1/alarm-metrics/stale.csv")(alarm_metrics_request)
    active = download("/v1/alarm-metrics/active.csv")(alarm_metrics_request)
