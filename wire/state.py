"""How an agent is: retained on the broker, and left behind as its last will."""

from uuid import UUID

from pydantic import Field

from wire.events import WireModel
from wire.moment import Moment


class AgentState(WireModel):
    """An agent's account of itself. A will says ``online: false``; its time is when it is received."""

    online: bool
    agent: str = Field(max_length=64, pattern=r"^[!-~ ]*$", description="Version of the agent, in plain ASCII.")
    epoch: UUID
    spooled: int = Field(ge=0, le=2**63 - 1, description="Events waiting for an ack.")
    skew_ms: int | None = Field(
        default=None,
        ge=-(2**63),
        le=2**63 - 1,
        description="Service's plant clock minus the agent's, estimated.",
    )
    at: Moment
