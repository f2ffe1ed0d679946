"""What a stream of server-sent events tells, beside forecasts, which are as REST gives them."""

from pydantic import BaseModel, Field

from wire.identity import Identifier
from wire.timestamps import UtcDatetime


class RaisedAlarm(BaseModel):
    """The data of an event `alarm`: a machine raised it, and it is stored."""

    site: Identifier
    machine: Identifier
    at: UtcDatetime
    code: int
    text: str
    severity: str


class Missed(BaseModel):
    """The data of an event `missed`: alarms that came faster than they were read; the page of alarms has them."""

    count: int = Field(ge=1)
