"""Exports: CSV for spreadsheets and reports, piece by piece as it is made."""

from datetime import datetime

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, download
from wire.words import FigureLines


class Exports(Noun[S]):
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
    ) -> Ask:
        """Yield every stored alarm, machine by machine and in time order, flagged ones too."""
        span = {"since": since, "until": until}
        return Ask(params={"site": site, "machine": machine, **span, "code": code})

    def _figures(
        self,
        *,
        by: FigureLines = FigureLines.MACHINE,
        site: str | None = None,
        machine: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        shift: str | None = None,
    ) -> Ask:
        """Yield a table of the figures of a span: all lines of what ``by`` says, or all that the name says."""
        whose = {"site": site, "machine": machine, "shift": shift}
        return Ask(params={"by": by, "since": since, "until": until, **whose})

    top = download("/v1/figures/top.csv")(_figures)
    lines = download("/v1/figures/lines.csv")(_figures)
    floods = download("/v1/figures/floods.csv")(_figures)
    chatter = download("/v1/figures/chatter.csv")(_figures)
    standing = download("/v1/figures/standing.csv")(_figures)
