"""Read the request: path parameters, who sends it and from where."""

from typing import Annotated

from fastapi import Path, Request

from service.errors import InputRejected, NotSignedIn
from service.http.principal import Principal, current_user
from wire.enums import PrincipalKind
from wire.identity import ID_PATTERN

Site = Annotated[str, Path(pattern=ID_PATTERN, description="The plant.", examples=["padova"])]

MachineName = Annotated[str, Path(pattern=ID_PATTERN, description="The machine.", examples=["filler-1"])]


def principal() -> Principal:
    """Return who asks; the guard has let nobody in whom it does not know."""
    who = current_user()
    if who is None:
        raise NotSignedIn("Who are you? Sign in first: POST /v1/session.")
    return who


def actor(_request: Request) -> str:
    """Say who asks, as the book of changes names them."""
    return principal().name


def author(by: str | None) -> str:
    """Return who is the author of what is asked: the signed-in user; a program may name the person it asks for."""
    asks = principal()
    if by is None or by == asks.name:
        return asks.name
    if asks.kind is PrincipalKind.SESSION:
        raise InputRejected(f"You are signed in as {asks.name}, who is the author. Leave `by` out.")
    return f"{by} ({asks.name})"


def client_ip(request: Request) -> str | None:
    """Return the address that a request comes from."""
    return request.client.host if request.client else None
