"""Credentials: what lets a machine in at the broker."""

from alarmcast.call import Ask, MachineName, named
from alarmcast.endpoint import Noun, S, operation
from wire.rest.credentials import CredentialsView, IssuedCredentials
from wire.rest.enrolment import Reason


class Credentials(Noun[S]):
    """``client.credentials``; a machine is named ``site/machine``."""

    @operation("GET /v1/machines/{site}/{machine}/credentials", CredentialsView)
    def of(self, machine: MachineName) -> Ask:
        """Return whether the broker lets a machine in; never with what."""
        return Ask(at=named(machine))

    @operation("POST /v1/machines/{site}/{machine}/credentials/rotate", IssuedCredentials)
    def rotate(self, machine: MachineName) -> Ask:
        """Issue a new password, shown in this answer only, and throw out whoever is there with the old one."""
        return Ask(at=named(machine))

    @operation("POST /v1/machines/{site}/{machine}/credentials/revoke", CredentialsView)
    def revoke(self, machine: MachineName, *, reason: str) -> Ask:
        """Throw a machine out and let it in no more, until its credentials are rotated."""
        return Ask(at=named(machine), body=Reason(reason=reason))
