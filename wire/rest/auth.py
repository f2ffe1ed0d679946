"""People and programs: who may sign in, who may ask, and what one's own rights are."""

from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
)
from pydantic.config import JsonDict

from wire.enums import PrincipalKind, Role
from wire.identity import Identifier
from wire.rest.texts import PRINTABLE, PrintableText
from wire.timestamps import UtcDatetime

SESSION_COOKIE: Final = "alarmcast_session"  # a browser's token; no script can read it
NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,62}$"
UserName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
Password = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
SitesField = Annotated[
    list[Identifier] | None,
    Field(max_length=1000, description="Only these sites; null is every site, also those that are yet to come."),
]

_USER: JsonDict = {
    "name": "maria",
    "role": "operator",
    "sites": ["padova"],
    "must_change": False,
    "created_at": "2026-11-16T08:00:00.000Z",
    "signed_in_at": "2026-11-16T08:05:00.000Z",
}
_ME: JsonDict = {"name": "maria", "role": "operator", "sites": ["padova"], "kind": "session", "must_change": False}
_KEY: JsonDict = {
    "id": 1,
    "name": "andon-board",
    "prefix": "9f2c41d07a55",
    "role": "viewer",
    "sites": ["padova"],
    "created_at": "2026-11-16T08:00:00.000Z",
    "created_by": "admin",
    "expires_at": "2027-11-16T08:00:00.000Z",
    "used_at": None,
}


class SignIn(BaseModel):
    """A name and a password."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "maria", "password": "four unrelated plain words"}]},
    )

    name: str = Field(min_length=1, max_length=200, pattern=PRINTABLE, description="The user.")
    password: Password = Field(description="Their password.")


class Me(BaseModel):
    """Who asks, and what they may do."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ME]})

    name: str
    role: Role
    sites: list[str] | None = Field(description="Their sites, in order; null is every site.")
    kind: PrincipalKind = Field(description="By what they are known.")
    must_change: bool = Field(description="Whether their password was told once and must be changed first.")


class SignedIn(Me):
    """A session that has begun; a browser gets its token as a cookie too."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [_ME | {"token": "acs_9f2c41d07a55_…", "expires_at": "2026-12-16T08:05:00.000Z"}]
        }
    )

    token: str = Field(description="Send it as `Authorization: Bearer …`; shown this once.")
    expires_at: UtcDatetime = Field(description="When it ends at the latest.")


class PasswordChange(BaseModel):
    """Another password for oneself."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"old": "k7tq-9wmx-…", "new": "four unrelated plain words"}]},
    )

    old: Password = Field(description="The present one.")
    new: Password = Field(description="At least 12 characters, and nothing that anybody would try first.")


class UserView(BaseModel):
    """Somebody who may sign in."""

    model_config = ConfigDict(json_schema_extra={"examples": [_USER]})

    name: UserName
    role: Role
    sites: list[Identifier] | None = Field(description="Their sites, in order; null is every site.")
    must_change: bool = Field(description="Whether their password was told once and not changed yet.")
    created_at: UtcDatetime
    last_login_at: UtcDatetime | None = Field(description="When they last signed in.")


class UserList(BaseModel):
    """Users by name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"users": [_USER]}]})

    users: list[UserView]


class UserCreate(BaseModel):
    """Somebody new who may sign in."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "maria", "role": "operator", "sites": ["padova"]}]},
    )

    name: UserName = Field(description="Lower-case letters, digits, '.', '-' and '_'.")
    role: Role = Field(default=Role.VIEWER, description="What they may do.")
    sites: SitesField = None
    password: Password | None = Field(
        default=None, description="One that is told once, in the answer, unless given."
    )


class NewUser(UserView):
    """A user who was just made; ``password`` is told this once and must be changed at the first sign-in."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [_USER | {"must_change": True, "signed_in_at": None, "password": "k7tq-9wmx-…"}]
        }
    )

    password: str | None = Field(description="Null if one was given.")


class UserChange(BaseModel):
    """What of a user is to be another; what is left out stays."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "admin", "sites": None}]})

    role: Role | None = Field(default=None, description="Another role.")
    sites: SitesField = None

    @model_serializer(mode="wrap")
    def _only_what_changes(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what was not given: sites that are null are every site."""
        return {name: value for name, value in whole(self).items() if name in self.model_fields_set}


class OneTimePassword(BaseModel):
    """A password that is told this once and must be changed at the next sign-in."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "maria", "password": "k7tq-9wmx-…"}]})

    name: UserName
    password: str


class ApiKeyCreate(BaseModel):
    """A program that may ask."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"name": "andon-board", "role": "viewer", "sites": ["padova"], "days": 365}]
        },
    )

    name: PrintableText = Field(max_length=63, description="What it is for.")
    role: Role = Field(default=Role.VIEWER, description="What it may do.")
    sites: SitesField = None
    days: int | None = Field(
        default=None, ge=1, le=3650, description="After so many days it is void; never unless given."
    )


class ApiKeyView(BaseModel):
    """A key, of which only the beginning is shown again."""

    model_config = ConfigDict(json_schema_extra={"examples": [_KEY]})

    id: int
    name: str
    prefix: str = Field(description="It stands between the two underscores of the key.")
    role: Role
    sites: list[Identifier] | None = Field(description="Its sites, in order; null is every site.")
    created_at: UtcDatetime
    created_by: str
    expires_at: UtcDatetime | None
    used_at: UtcDatetime | None = Field(description="When it was last used, to the minute.")


class NewApiKey(ApiKeyView):
    """A key that was just made, shown this once."""

    model_config = ConfigDict(json_schema_extra={"examples": [_KEY | {"key": "ack_9f2c41d07a55_…"}]})

    key: str = Field(description="Send it as `Authorization: Bearer …`.")


class ApiKeyList(BaseModel):
    """Keys, oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"keys": [_KEY]}]})

    keys: list[ApiKeyView]
