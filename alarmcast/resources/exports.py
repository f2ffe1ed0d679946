"""Exports: CSV for spreadsheets and reports, piece by piece as it is made."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, download
from alarmcast.requests import RequestSpec
from alarmcast.resources.figures import figures_asked


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
        """Yield every stored alarm, machine by machine and in time order, flagged ones too."""
        span = {"since": since, "until": until}
        return RequestSpec(params={"site": site, "machine": machine, **span, "code": code})

    top = download("/v1/figures/top.csv")(figures_asked)
    lines = download("/v1/figures/lines.csv")(figures_asked)
    floods = download("/v1/figures/floods.csv")(figures_asked)
    chatter = download("/v1/figures/chatter.csv")(figures_asked)
    standing = download("/v1/figures/standing.csv")(figures_asked)
