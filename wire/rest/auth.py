"""Login, users and API keys."""

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

SESSION_COOKIE: Final = "alarmcast_session"  # HttpOnly
NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,62}$"
UserName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
Password = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
SitesField = Annotated[
    list[Identifier] | None,
    Field(max_length=1000, description="Only these sites; null is every site, including future ones."),
]

_USER: JsonDict = {
    "name": "maria",
    "role": "operator",
    "sites": ["padova"],
    "must_change": False,
    "created_at": "2026-11-16T08:00:00.000Z",
    "last_login_at": "2026-11-16T08:05:00.000Z",
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
    """User name and password."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "maria", "password": "four unrelated plain words"}]},
    )

    name: str = Field(min_length=1, max_length=200, pattern=PRINTABLE, description="The user.")
    password: Password = Field(description="Their password.")


class Me(BaseModel):
    """The user or API key of the request, with role and sites."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ME]})

    name: str
    role: Role
    sites: list[str] | None = Field(description="Their sites, in order; null is every site.")
    kind: PrincipalKind = Field(description="How the request was authenticated.")
    must_change: bool = Field(description="Whether the password is temporary and must be changed first.")


class SignedIn(Me):
    """A new session; a browser gets its token as a cookie too."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [_ME | {"token": "acs_9f2c41d07a55_…", "expires_at": "2026-12-16T08:05:00.000Z"}]
        }
    )

    token: str = Field(description="Send it as `Authorization: Bearer …`; shown this once.")
    expires_at: UtcDatetime = Field(description="When it expires at the latest.")


class PasswordChange(BaseModel):
    """A change of the own password."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"old": "k7tq-9wmx-…", "new": "four unrelated plain words"}]},
    )

    old: Password = Field(description="The current password.")
    new: Password = Field(description="At least 12 characters, and not a common password.")


class UserView(BaseModel):
    """A user."""

    model_config = ConfigDict(json_schema_extra={"examples": [_USER]})

    name: UserName
    role: Role
    sites: list[Identifier] | None = Field(description="Their sites, in order; null is every site.")
    must_change: bool = Field(description="Whether the password is temporary and not changed yet.")
    created_at: UtcDatetime
    last_login_at: UtcDatetime | None = Field(description="Time of the last login.")


class UserList(BaseModel):
    """Users by name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"users": [_USER]}]})

    users: list[UserView]


class UserCreate(BaseModel):
    """A new user."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "maria", "role": "operator", "sites": ["padova"]}]},
    )

    name: UserName = Field(description="Lower-case letters, digits, '.', '-' and '_'.")
    role: Role = Field(default=Role.VIEWER, description="The role.")
    sites: SitesField = None
    password: Password | None = Field(
        default=None, description="Without it a temporary password is generated and returned this once."
    )


class NewUser(UserView):
    """The added user; the temporary ``password`` is shown this once and must be changed at the first login."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [_USER | {"must_change": True, "last_login_at": None, "password": "k7tq-9wmx-…"}]
        }
    )

    password: str | None = Field(description="Null if one was given.")


class UserChange(BaseModel):
    """A change of a user; fields that are left out stay as they are."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "admin", "sites": None}]})

    role: Role | None = Field(default=None, description="Another role.")
    sites: SitesField = None

    @model_serializer(mode="wrap")
    def _only_what_changes(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out fields that were not given: ``sites`` of null means every site."""
        return {name: value for name, value in whole(self).items() if name in self.model_fields_set}


class OneTimePassword(BaseModel):
    """A temporary password, shown this once; it must be changed at the next login."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "maria", "password": "k7tq-9wmx-…"}]})

    name: UserName
    password: str


class ApiKeyCreate(BaseModel):
    """A new API key."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"name": "andon-board", "role": "viewer", "sites": ["padova"], "days": 365}]
        },
    )

    name: PrintableText = Field(max_length=63, description="What it is for.")
    role: Role = Field(default=Role.VIEWER, description="The role.")
    sites: SitesField = None
    days: int | None = Field(
        default=None, ge=1, le=3650, description="Expires after so many days; never unless given."
    )


class ApiKeyView(BaseModel):
    """An API key without its secret."""

    model_config = ConfigDict(json_schema_extra={"examples": [_KEY]})

    id: int
    name: str
    prefix: str = Field(description="The part between the two underscores of the key.")
    role: Role
    sites: list[Identifier] | None = Field(description="Its sites, in order; null is every site.")
    created_at: UtcDatetime
    created_by: str
    expires_at: UtcDatetime | None
    used_at: UtcDatetime | None = Field(description="When it was last used, to the minute.")


class NewApiKey(ApiKeyView):
    """A new API key, shown this once."""

    model_config = ConfigDict(json_schema_extra={"examples": [_KEY | {"key": "ack_9f2c41d07a55_…"}]})

    key: str = Field(description="Send it as `Authorization: Bearer …`.")


class ApiKeyList(BaseModel):
    """API keys, oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"keys": [_KEY]}]})

    keys: list[ApiKeyView]
