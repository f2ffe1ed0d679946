"""Read path parameters, principal and client address of a request."""

from typing import Annotated

from fastapi import Path, Request

from service.errors import InputRejected, NotSignedIn
from service.http.principal import Principal, current_user
from wire.enums import PrincipalKind
from wire.identity import ID_PATTERN

Site = Annotated[str, Path(pattern=ID_PATTERN, description="The plant.", examples=["padova"])]

MachineName = Annotated[str, Path(pattern=ID_PATTERN, description="The machine.", examples=["filler-1"])]


def principal() -> Principal:
    """Return the principal of the current request."""
    user = current_user()
    if user is None:
        raise NotSignedIn("Authentication required. Log in first: POST /v1/session.")
    return user


def actor(_request: Request) -> str:
    """Return the name that the audit log records."""
    return principal().name


def author(by: str | None) -> str:
    """Return the author of a change: the logged-in user; a program may name the person it acts for."""
    user = principal()
    if by is None or by == user.name:
        return user.name
    if user.kind is PrincipalKind.SESSION:
        raise InputRejected(f"You are logged in as {user.name}, who is the author. Leave `by` out.")
    return f"{by} ({user.name})"


def client_ip(request: Request) -> str | None:
    """Return the address of the client."""
    return request.client.host if request.client else None
