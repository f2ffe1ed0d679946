"""Sessions: sign in, sign out, who one is, another password."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from service.http.principal import Principal
from service.http.problems import responses
from service.http.request import client_ip, principal
from wire.rest.auth import SESSION_COOKIE, Me, PasswordChange, SignedIn, SignIn

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of sessions."""
    routes = APIRouter(prefix="/v1", tags=["people"])

    @routes.post("/session", responses=responses(422))
    def sign_in(wish: SignIn, request: Request, response: Response) -> SignedIn:
        """Begin a session; 401 for a name or a password that is wrong, and never which of them.

        The token in the answer is for programs. A browser gets it as a cookie, which no script can read and no
        other site's page can use. Wrong passwords make the next try wait, longer each time: 429.
        """
        begun = parts.sign_in.login(wish.name, wish.password, origin=client_ip(request))
        session = begun.session
        response.set_cookie(
            SESSION_COOKIE,
            begun.token,
            max_age=int((session.expires_at - session.created_at).total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        me = view(session.principal())
        return SignedIn(**me.model_dump(), token=begun.token, expires_at=session.expires_at)

    @routes.delete("/session", status_code=204, responses=responses(409))
    def sign_out(response: Response) -> None:
        """End the session one asks in, at once; 409 for whoever asks with a key."""
        parts.sign_in.logout(principal())
        response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")

    @routes.get("/me")
    def get_me() -> Me:
        """Who asks, and what they may do."""
        return view(principal())

    @routes.post("/me/password", status_code=204, responses=responses(409, 422))
    def change_password(change: PasswordChange, request: Request) -> None:
        """Take another password; one's other sessions end. 401 if the old one is wrong, 409 with a key."""
        parts.sign_in.change_password(principal(), change.old, change.new, origin=client_ip(request))

    return routes


def view(who: Principal) -> Me:
    """Return a principal as the API shows it."""
    sites = None if who.sites is None else sorted(who.sites)
    return Me(name=who.name, role=who.role, sites=sites, kind=who.kind, must_change=who.must_change)
