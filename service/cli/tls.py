"""``alarmcast admin tls-init``: a private authority for a plant without one, and what it signs."""

import re
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from service.broker_access.certificates import Authority, Pair, ends_at
from service.cli.arguments import BrokerOwner, broker_owner
from service.errors import InputRejected

_ALWAYS = ("localhost", "127.0.0.1")
_CLIENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def tls_init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the certificates are kept.")],
    *,
    host: Annotated[
        list[str] | None, typer.Option(help="A name or address by which broker and API are reached; repeatable.")
    ] = None,
    client: Annotated[
        list[str] | None, typer.Option(help="Make a client certificate of this name too; repeatable.")
    ] = None,
    owner: BrokerOwner = None,
    renew: Annotated[bool, typer.Option("--renew", help="Sign all of the folder's certificates anew.")] = False,
) -> None:
    """Found a private authority and sign certificates for broker, API and clients; keys only their owner reads."""
    authority = Authority(folder, datetime.now(UTC))
    clients = client or []
    for name in clients:
        if not _CLIENT.fullmatch(name):
            raise InputRejected(f"{name!r} cannot name a client: take letters, digits, dots, - and _.")
    if renew:
        if host or clients:
            raise InputRejected("--renew keeps the names as they are; leave out --host and --client.")
        made = authority.renew()
    else:
        if not host and not authority.files.certificate.exists():
            raise InputRejected("Name at least one host by which broker and API are reached: --host plant.example")
        made = authority.found(hosts=[*(host or ()), *_ALWAYS], clients=clients)
    _give(made, owner)
    for pair in made:
        typer.echo(f"{pair.certificate} until {ends_at(pair.certificate):%Y-%m-%d}, its key {pair.key}")
    end = ends_at(authority.files.certificate)
    typer.echo(
        f"The authority, {authority.files.certificate}, lasts until {end:%Y-%m-%d}: give it to whoever connects. "
        f"Whoever has {authority.files.key} can be anybody; keep it away from the network."
    )


def _give(made: Iterable[Pair], owner: str | None) -> None:
    """Let the broker read its key."""
    runs_as = broker_owner(owner)
    for pair in made:
        if pair.name == "broker" and runs_as is not None:
            try:
                shutil.chown(pair.key, runs_as)
            except (OSError, LookupError) as error:
                raise InputRejected(f"{pair.key} cannot be given to {runs_as}: {error}.") from None
