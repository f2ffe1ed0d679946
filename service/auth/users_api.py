"""Users: who may sign in, in which role and for which sites."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path

from service.auth.models import User
from service.auth.users import UserUpdate
from service.http.principal import Sites
from service.http.problems import responses
from service.http.request import principal
from wire.rest.auth import (
    NAME_PATTERN,
    NewUser,
    OneTimePassword,
    UserChange,
    UserCreate,
    UserList,
    UserView,
)

if TYPE_CHECKING:
    from service.app.api_services import AppServices

Name = Annotated[str, Path(pattern=NAME_PATTERN, description="The user.", examples=["maria"])]


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of users."""
    routes = APIRouter(prefix="/v1/users", tags=["people"])

    @routes.get("")
    def list_users() -> UserList:
        """Everybody who may sign in; to an admin of some sites, those whose sites are all among them."""
        return UserList(users=[_view(one) for one in parts.people.all_users(principal())])

    @routes.post("", status_code=201, responses=responses(409, 422))
    def add_user(wish: UserCreate) -> NewUser:
        """Let somebody sign in; without a password they get one that is told once, here."""
        made, told = parts.people.add_user(
            wish.name, wish.role, sites_of(wish.sites), password=wish.password, by=principal()
        )
        return NewUser(**_view(made).model_dump(), password=told)

    @routes.patch("/{name}", responses=responses(404, 409, 422))
    def change_user(name: Name, change: UserChange) -> UserView:
        """Give a user another role or other sites, at once; 409 for the last admin of all sites."""
        moves = "sites" in change.model_fields_set
        wanted = UserUpdate(change.role, sites_of(change.sites), moves)
        return _view(parts.people.change_user(name, wanted, by=principal()))

    @routes.post("/{name}/password", responses=responses(404, 422))
    def reset_password(name: Name) -> OneTimePassword:
        """Give a user a password that is told once, here; they are signed out everywhere."""
        return OneTimePassword(name=name, password=parts.people.reset_password(name, by=principal()))

    @routes.delete("/{name}", status_code=204, responses=responses(404, 409, 422))
    def remove_user(name: Name) -> None:
        """Let somebody sign in no more, and sign them out; 409 for the last admin of all sites."""
        parts.people.remove_user(name, by=principal())

    return routes


def sites_of(named: list[str] | None) -> Sites:
    """Return sites as they were named; None is every site."""
    return None if named is None else frozenset(named)


def _view(user: User) -> UserView:
    return UserView(
        name=user.name,
        role=user.role,
        sites=None if user.sites is None else sorted(user.sites),
        must_change=user.must_change,
        created_at=user.created_at,
        last_login_at=user.signed_in_at,
    )
