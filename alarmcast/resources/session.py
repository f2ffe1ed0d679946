"""One's own affairs: sign in and out, who one is, another password."""

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.rest.auth import Me, PasswordChange, SignedIn, SignIn


class Session(Resource[TransportT]):
    """``client.session``; a client that signs in has the session's cookie and goes on in its name."""

    @operation("POST /v1/session", SignedIn)
    def login(self, name: str, password: str) -> RequestSpec:
        """Sign in; the answer's token is the key of another client, shown this once."""
        return RequestSpec(body=SignIn(name=name, password=password))

    @operation("DELETE /v1/session", type(None))
    def logout(self) -> RequestSpec:
        """Sign out."""
        return RequestSpec()

    @operation("GET /v1/me", Me)
    def me(self) -> RequestSpec:
        """Return who one is, and what one may do."""
        return RequestSpec()

    @operation("POST /v1/me/password", type(None))
    def change_password(self, old: str, new: str) -> RequestSpec:
        """Take another password; one's other sessions end."""
        return RequestSpec(body=PasswordChange(old=old, new=new))
