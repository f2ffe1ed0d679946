"""Timeline of a machine."""

from pydantic import BaseModel, ConfigDict, Field

from wire.identity import Identifier
from wire.rest.alarm_metrics import ActiveAlarmView, FloodView, StandingAlarmView
from wire.rest.gaps import GapView
from wire.timestamps import UtcDatetime


class TimelineAlarm(BaseModel):
    """An alarm on the timeline."""

    at: UtcDatetime
    code: int
    text: str
    severity: str
    until: UtcDatetime | None = Field(default=None, description="When it was cleared; null if unknown.")
    active: bool = Field(default=False, description="Whether it is active at the end of what is known.")


class BurstView(BaseModel):
    """A chattering period: three or more alarms of a code within a minute, until a minute without it."""

    code: int
    text: str
    start: UtcDatetime
    end: UtcDatetime = Field(description="The last of its alarms.")
    alarms: int


class TimelineView(BaseModel):
    """Alarms and findings of a machine in time order, including shelved alarms."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "site": "padova",
                    "machine": "filler-1",
                    "name": "Filler 1",
                    "time_zone": "Europe/Rome",
                    "since": "2026-11-15T04:00:00.000Z",
                    "until": "2026-11-16T08:00:00.000Z",
                    "count": 1,
                    "alarms": [
                        {
                            "at": "2026-11-16T05:12:03.000Z",
                            "code": 26,
                            "text": "Door open",
                            "severity": "low",
                            "until": "2026-11-16T05:13:40.000Z",
                            "active": False,
                        }
                    ],
                    "earlier": [],
                    "truncated": False,
                    "floods": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "start": "2026-11-15T21:04:11.000Z",
                            "end": "2026-11-15T21:22:40.000Z",
                            "alarms": 19,
                            "peak_10min": 17,
                            "top_code": 139,
                            "top_text": "Film torn",
                        }
                    ],
                    "chatter": [
                        {
                            "code": 26,
                            "text": "Door open",
                            "start": "2026-11-16T05:11:20.000Z",
                            "end": "2026-11-16T05:12:03.000Z",
                            "alarms": 4,
                        }
                    ],
                    "standing": [],
                    "gaps": [],
                    "last_seen_at": "2026-11-16T07:59:40.000Z",
                    "online": True,
                    "silent_since": None,
                }
            ]
        }
    )

    site: Identifier
    machine: Identifier
    name: str
    time_zone: str
    since: UtcDatetime
    until: UtcDatetime
    count: int = Field(description="Alarms in the span.")
    alarms: list[TimelineAlarm] = Field(description="The newest 5000 of them.")
    earlier: list[ActiveAlarmView] = Field(
        default=[], description="Alarms that were raised before the span and active in it, the longest 1000."
    )
    truncated: bool = Field(description="Whether some list holds only the newest; choose a shorter span.")
    floods: list[FloodView] = Field(description="Floods that overlap the span, the newest 1000.")
    chatter: list[BurstView] = Field(description="Chattering periods, the newest 1000.")
    standing: list[StandingAlarmView] = Field(description="Standing alarms, the longest first.")
    gaps: list[GapView] = Field(description="Events that the agent had to drop, the newest 1000.")
    last_seen_at: UtcDatetime | None = Field(description="Last message from the agent; null if none.")
    online: bool | None = Field(description="Last reported state of the agent; null if none.")
    silent_since: UtcDatetime | None = Field(
        description="Its last alarm, if no alarms were received for unusually long."
    )
