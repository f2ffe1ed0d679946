"""Routes of login, users, API keys and the audit log."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from service.auth.audit_store import AuditQuery, AuditStore
from service.auth.login import LoginService
from service.auth.models import UserUpdate
from service.auth.users import UserService
from service.http.principal import Sites
from service.http.problems import responses
from service.http.request import CursorQuery, Limit, Number, client_ip, paginate, principal
from wire.rest.audit import AuditPage
from wire.rest.auth import (
    NAME_PATTERN,
    SESSION_COOKIE,
    ApiKeyCreate,
    ApiKeyList,
    Me,
    NewApiKey,
    NewUser,
    OneTimePassword,
    PasswordChange,
    SignedIn,
    SignIn,
    UserChange,
    UserCreate,
    UserList,
    UserView,
)
from wire.rest.texts import PRINTABLE, PrintableText

Name = Annotated[str, Path(pattern=NAME_PATTERN, description="The user.", examples=["maria"])]


def session_router(login: LoginService) -> APIRouter:
    """Return the routes of login, logout and one's own password."""
    routes = APIRouter(prefix="/v1", tags=["people"])

    @routes.post("/session", responses=responses(422))
    def sign_in(body: SignIn, request: Request, response: Response) -> SignedIn:
        """Log in; 401 for a wrong user name or password, without saying which of them.

        The token in the answer is for programs. A browser gets it as a cookie that scripts cannot read and other
        sites cannot use. After wrong passwords the next attempt must wait, longer each time: 429.
        """
        result = login.login(body.name, body.password, origin=client_ip(request))
        session = result.session
        response.set_cookie(
            SESSION_COOKIE,
            result.token,
            max_age=int((session.expires_at - session.created_at).total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        me = session.principal().view()
        return SignedIn(**me.model_dump(), token=result.token, expires_at=session.expires_at)

    @routes.delete("/session", status_code=204, responses=responses(409))
    def sign_out(response: Response) -> None:
        """End the session of this request; 409 with an API key."""
        login.logout(principal())
        response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")

    @routes.get("/me")
    def get_me() -> Me:
        """Return the user or API key of this request, with its role and sites."""
        return principal().view()

    @routes.post("/me/password", status_code=204, responses=responses(409, 422))
    def change_password(change: PasswordChange, request: Request) -> None:
        """Change the own password and end the other sessions; 401 if the old one is wrong, 409 with an API key."""
        login.change_password(principal(), change.old, change.new, origin=client_ip(request))

    return routes


def users_router(users: UserService) -> APIRouter:
    """Return the routes of users."""
    routes = APIRouter(prefix="/v1/users", tags=["people"])

    @routes.get("")
    def list_users() -> UserList:
        """List the users; an admin of some sites sees those whose sites are all among them."""
        return UserList(users=[user.view() for user in users.all_users(principal())])

    @routes.post("", status_code=201, responses=responses(409, 422))
    def add_user(body: UserCreate) -> NewUser:
        """Add a user; without a password a temporary one is generated and returned this once."""
        user, temporary = users.add_user(
            body.name, body.role, _sites(body.sites), password=body.password, by=principal()
        )
        return NewUser(**user.view().model_dump(), password=temporary)

    @routes.patch("/{name}", responses=responses(404, 409, 422))
    def change_user(name: Name, body: UserChange) -> UserView:
        """Change a user's role or sites, at once; 409 for the last admin of all sites."""
        change = UserUpdate(body.role, _sites(body.sites), change_sites="sites" in body.model_fields_set)
        return users.change_user(name, change, by=principal()).view()

    @routes.post("/{name}/password", responses=responses(404, 422))
    def reset_password(name: Name) -> OneTimePassword:
        """Give a user a temporary password, returned this once, and end all their sessions."""
        return OneTimePassword(name=name, password=users.reset_password(name, by=principal()))

    @routes.delete("/{name}", status_code=204, responses=responses(404, 409, 422))
    def remove_user(name: Name) -> None:
        """Remove a user and end their sessions; 409 for the last admin of all sites."""
        users.remove_user(name, by=principal())

    return routes


def keys_router(users: UserService) -> APIRouter:
    """Return the routes of API keys."""
    routes = APIRouter(prefix="/v1/keys", tags=["people"])

    @routes.get("")
    def list_keys() -> ApiKeyList:
        """List the API keys without secrets; an admin of some sites sees those whose sites are all among them."""
        return ApiKeyList(keys=[key.view() for key in users.all_keys(principal())])

    @routes.post("", status_code=201, responses=responses(409, 422))
    def add_key(body: ApiKeyCreate) -> NewApiKey:
        """Create an API key; it is returned this once, and only its SHA-256 is stored."""
        ttl = None if body.days is None else timedelta(days=body.days)
        issued = users.add_key(body.name, body.role, _sites(body.sites), ttl=ttl, by=principal())
        return NewApiKey(**issued.key.view().model_dump(), key=issued.token)

    @routes.delete("/{number}", status_code=204, responses=responses(404, 422))
    def revoke_key(
        number: Number,
        reason: Annotated[
            PrintableText | None, Query(max_length=1000, description="Recorded in the audit log.")
        ] = None,
    ) -> None:
        """Revoke an API key, at once."""
        users.revoke_key(number, by=principal(), reason=reason)

    return routes


def audit_router(audit: AuditStore) -> APIRouter:
    """Return the route of the audit log."""
    routes = APIRouter(prefix="/v1/audit", tags=["people"])

    @routes.get("", responses=responses(422))
    def list_changes(
        limit: Limit = 100,
        cursor: CursorQuery = None,
        who: Annotated[
            str | None, Query(max_length=200, pattern=PRINTABLE, description="Only entries of this user.")
        ] = None,
    ) -> AuditPage:
        """List requested changes, newest first, in pages; entries are never deleted."""
        entries = audit.page(AuditQuery(limit + 1, cursor, who))
        shown, following = paginate(entries, limit, lambda entry: entry.id)
        return AuditPage(entries=shown, next=following)

    return routes


def _sites(names: list[str] | None) -> Sites:
    return None if names is None else frozenset(names)
