"""One's own affairs: sign in and out, who one is, another password."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation
from wire.rest.people import Me, PasswordChange, SignedIn, SignIn


class Session(Noun[S]):
    """``client.session``; a client that signs in has the session's cookie and goes on in its name."""

    @operation("POST /v1/session", SignedIn)
    def begin(self, name: str, password: str) -> Ask:
        """Sign in; the answer's token is the key of another client, shown this once."""
        return Ask(body=SignIn(name=name, password=password))

    @operation("DELETE /v1/session", type(None))
    def end(self) -> Ask:
        """Sign out."""
        return Ask()

    @operation("GET /v1/me", Me)
    def me(self) -> Ask:
        """Return who one is, and what one may do."""
        return Ask()

    @operation("POST /v1/me/password", type(None))
    def change_password(self, old: str, new: str) -> Ask:
        """Take another password; one's other sessions end."""
        return Ask(body=PasswordChange(old=old, new=new))
