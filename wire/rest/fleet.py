"""The whole fleet at a glance, whole or only what changed."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import ConnectionStatus, MachineState
from wire.forecasts import ForecastLevel, ForecastStatus, Share
from wire.identity import Identifier
from wire.rest.machines import UnregisteredMachineView
from wire.timestamps import UtcDatetime

STRIP_HOURS = 28
MOST_LIKELY = 3
_WANTS_A_LOOK = (ConnectionStatus.SILENT, ConnectionStatus.STALE, ConnectionStatus.OFFLINE)

MachineKey = Annotated[str, Field(description="site/machine", examples=["padova/filler-1"])]


class LastAlarm(BaseModel):
    """What the machine raised last."""

    at: UtcDatetime
    code: int
    text: str
    severity: str


class LikelyView(BaseModel):
    """An alarm that may come within the horizon, beside how likely it usually is."""

    code: int
    text: str
    severity: str
    probability: Share = Field(description="That it is raised at least once within the horizon.")
    base_rate: Share | None = Field(description="How often this machine's past horizons held it.")
    lift: float | None = Field(
        description="Probability over base rate; null without a base rate, or where that is nought."
    )
    expected: bool = Field(description="Whether it is more likely than not.")
    level: ForecastLevel | None = Field(default=None, description="Whether it is expected, elevated or usual.")
    shelved: bool = Field(default=False, description="It is shelved: no notifications for now.")


class ShelvedAlarm(BaseModel):
    """An alarm of a machine that is shelved now."""

    code: int
    text: str


class FleetCard(BaseModel):
    """One machine in short."""

    site: Identifier
    machine: Identifier
    name: str
    time_zone: str
    state: MachineState = Field(description="How far it is on the way to a model that knows it.")
    presence: ConnectionStatus
    last_seen_at: UtcDatetime | None = Field(description="When its agent was last seen.")
    spooled: int | None = Field(description="Events that wait at the machine for an ack.")
    last_alarm: LastAlarm | None
    hourly_counts: list[int] = Field(
        description=f"Alarms in each of {STRIP_HOURS} plant hours, oldest first; the last is the hour under way.",
        min_length=STRIP_HOURS,
        max_length=STRIP_HOURS,
    )
    hourly_counts_end: UtcDatetime = Field(description="The end of the hour under way.")
    forecast_status: ForecastStatus | None = Field(
        description="How far to trust it; null without a forecast, or until its agent has connected."
    )
    learned: bool = Field(description="Whether the model that serves has learned this machine.")
    likely: list[LikelyView] = Field(
        description=f"At most {MOST_LIKELY}, by severity x probability x how far above usual, then probability; "
        "empty until its agent has connected.",
        max_length=MOST_LIKELY,
    )
    expected: int = Field(description="How many alarms are expected in all; shelved ones do not count.")
    shelved: list[ShelvedAlarm] = Field(
        default_factory=list, description="What is shelved now, whether it is likely or not, by code."
    )
    urgency: float = Field(
        description="Of its most urgent alarm: severity (1 to 3) x probability x (lift - 1), lift at most 5; "
        "0 while the machine behaves as usual."
    )

    @property
    def place(self) -> tuple[int, float, float, str, str]:
        """Sort key of cards, so that clients which merge changed cards keep the order."""
        if self.presence is ConnectionStatus.NEVER:
            group = 3
        else:
            group = 0 if self.urgency else 1 if self.presence in _WANTS_A_LOOK else 2
        likeliest = max((alarm.probability for alarm in self.likely), default=0.0)
        return (group, -self.urgency, -likeliest, self.site, self.machine)


class FleetOverview(BaseModel):
    """Every machine's card, most urgent first, or with ``since`` only the cards that changed."""

    model_config = ConfigDict(
        protected_namespaces=(),
        json_schema_extra={
            "examples": [
                {
                    "revision": "5f1c09d2.118",
                    "complete": True,
                    "plant_time": "2026-11-16T08:20:00.000Z",
                    "model_version": "v3",
                    "cards": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "name": "Filler 1",
                            "time_zone": "Europe/Rome",
                            "state": "live",
                            "presence": "online",
                            "last_seen_at": "2026-11-16T08:19:48.000Z",
                            "spooled": 0,
                            "last_alarm": {
                                "at": "2026-11-16T08:12:07.000Z",
                                "code": 139,
                                "text": "Film torn",
                                "severity": "high",
                            },
                            "hourly_counts": [
                                0,
                                2,
                                1,
                                0,
                                0,
                                0,
                                3,
                                5,
                                1,
                                0,
                                0,
                                0,
                                0,
                                1,
                                0,
                                0,
                                2,
                                2,
                                0,
                                0,
                                0,
                                0,
                                1,
                                0,
                                4,
                                1,
                                0,
                                2,
                            ],
                            "hourly_counts_end": "2026-11-16T09:00:00.000Z",
                            "forecast_status": "ok",
                            "learned": True,
                            "likely": [
                                {
                                    "code": 139,
                                    "text": "Film torn",
                                    "severity": "high",
                                    "probability": 0.81,
                                    "base_rate": 0.27,
                                    "lift": 3.0,
                                    "expected": True,
                                    "level": "expected",
                                }
                            ],
                            "expected": 1,
                            "shelved": [{"code": 26, "text": "Door open"}],
                            "urgency": 4.86,
                        }
                    ],
                    "gone": [],
                    "unregistered": [
                        {
                            "site": "padova",
                            "machine": "capper-2",
                            "first_at": "2026-11-16T07:00:00.000Z",
                            "last_at": "2026-11-16T08:19:00.000Z",
                        }
                    ],
                    "sites": ["padova"],
                }
            ]
        },
    )

    revision: str = Field(description="Opaque; give it back as `since` to get only what changed after it.")
    complete: bool = Field(description="Whether all cards are here; false if only those that changed.")
    plant_time: UtcDatetime
    model_version: str | None = Field(description="What serves; null while nothing has been learned.")
    cards: list[FleetCard] = Field(
        description="Most urgent first; then machines that are not urgent but offline or silent; "
        "machines that have never connected come last."
    )
    gone: list[MachineKey] = Field(description="With `since`: machines that are no longer part of the fleet.")
    unregistered: list[UnregisteredMachineView] = Field(
        description="Who speaks as a machine that is not registered."
    )
    sites: list[Identifier] = Field(description="All sites, whatever was asked for.")
