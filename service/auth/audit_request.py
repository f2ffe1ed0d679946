"""Write a request to the audit log before it is carried out."""

from typing import TYPE_CHECKING

from service.http.request import principal

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def audit(parts: "AppServices", action: str, subject: str, reason: str | None = None) -> None:
    """Write a deed down before it is done, where it is not one transaction that could tell of itself."""
    parts.audit.write(at=parts.clock.now(), who=principal().name, action=action, subject=subject, reason=reason)
