"""What lets a machine in at the broker."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import CredentialState
from wire.identity import Identifier
from wire.timestamps import UtcDatetime

EXAMPLE_ISSUED: Final[dict[str, Any]] = {
    "username": "alarmcast-edge/padova/filler-1",
    "password": "(43 characters, shown this once)",
    "client_id": "alarmcast-edge/padova/filler-1",
    "generation": 1,
    "edge_toml": 'site = "padova"\nmachine = "filler-1"\n…',
}


class IssuedCredentials(BaseModel):
    """Fresh credentials, shown this once: the service forgets the password, and the broker keeps a hash of it."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_ISSUED]})

    username: str
    password: str = Field(repr=False)
    client_id: str = Field(description="The only client id that the broker takes with this user name.")
    generation: int = Field(description="How many times credentials have been issued for this machine.")
    edge_toml: str = Field(repr=False, description="A ready edge.toml for the machine's agent, password included.")


class CredentialsView(BaseModel):
    """How a machine's credentials are; never the secret."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "site": "padova",
                    "machine": "filler-1",
                    "state": "active",
                    "username": "alarmcast-edge/padova/filler-1",
                    "client_id": "alarmcast-edge/padova/filler-1",
                    "generation": 2,
                    "issued_at": "2026-10-01T07:00:00.000Z",
                    "rotated_at": "2026-11-01T09:30:00.000Z",
                    "revoked_at": None,
                    "locked_out_since": None,
                    "note": None,
                }
            ]
        }
    )

    site: Identifier
    machine: Identifier
    state: CredentialState
    username: str
    client_id: str
    generation: int = Field(description="How many times credentials have been issued; 0 if never.")
    issued_at: UtcDatetime | None
    rotated_at: UtcDatetime | None = Field(description="When they were last issued anew, if they were.")
    revoked_at: UtcDatetime | None
    locked_out_since: UtcDatetime | None = Field(
        description="When the service noticed that the broker keeps it out."
    )
    note: str | None = Field(description="What to do, or what has not reached the broker yet.")
