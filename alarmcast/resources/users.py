"""Users: who may sign in, in which role and for which sites."""

from collections.abc import Sequence
from types import EllipsisType

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.enums import Role
from wire.rest.auth import NewUser, OneTimePassword, UserChange, UserCreate, UserList, UserView


class Users(Resource[TransportT]):
    """``client.users``; ``sites=None`` is every site."""

    @operation("GET /v1/users", UserList)
    def list(self) -> RequestSpec:
        """Return everybody who may sign in."""
        return RequestSpec()

    @operation("POST /v1/users", NewUser)
    def add(
        self,
        name: str,
        *,
        role: Role = Role.VIEWER,
        sites: Sequence[str] | None = None,
        password: str | None = None,
    ) -> RequestSpec:
        """Add a user; without a password the answer has a temporary one, shown once."""
        return RequestSpec(body=UserCreate(name=name, role=role, sites=_listed(sites), password=password))

    @operation("PATCH /v1/users/{name}", UserView)
    def change(
        self, name: str, *, role: Role | None = None, sites: Sequence[str] | EllipsisType | None = ...
    ) -> RequestSpec:
        """Give a user another role or other sites; what is not given stays."""
        wanted = {} if role is None else {"role": role}
        moved = {} if isinstance(sites, EllipsisType) else {"sites": _listed(sites)}
        return RequestSpec(at={"name": name}, body=UserChange.model_validate({**wanted, **moved}))

    @operation("POST /v1/users/{name}/password", OneTimePassword)
    def reset_password(self, name: str) -> RequestSpec:
        """Give a user a temporary password, shown once, and end their sessions."""
        return RequestSpec(at={"name": name})

    @operation("DELETE /v1/users/{name}", type(None))
    def remove(self, name: str) -> RequestSpec:
        """Disable a user, and end their sessions."""
        return RequestSpec(at={"name": name})


def _listed(sites: Sequence[str] | None) -> list[str] | None:
    return None if sites is None else list(sites)
