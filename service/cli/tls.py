"""``alarmcast admin tls-init``: create a private CA and certificates."""

import re
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from service.broker_access.certificates import Authority, CertificateFiles, expires_at
from service.cli.arguments import BrokerOwner, broker_owner
from service.errors import InputRejected

_ALWAYS = ("localhost", "127.0.0.1")
_CLIENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def tls_init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the certificates.")],
    *,
    host: Annotated[
        list[str] | None, typer.Option(help="A name or address by which broker and API are reached; repeatable.")
    ] = None,
    client: Annotated[
        list[str] | None, typer.Option(help="Create a client certificate of this name too; repeatable.")
    ] = None,
    owner: BrokerOwner = None,
    renew: Annotated[bool, typer.Option("--renew", help="Renew all certificates of the folder.")] = False,
) -> None:
    """Create a private CA and certificates for broker, API and clients."""
    authority = Authority(folder, datetime.now(UTC))
    clients = client or []
    for name in clients:
        if not _CLIENT.fullmatch(name):
            raise InputRejected(f"{name!r} is not a client name: use letters, digits, dots, - and _.")
    if renew:
        if host or clients:
            raise InputRejected("--renew keeps the names as they are; leave out --host and --client.")
        created = authority.renew()
    else:
        if not host and not authority.files.certificate.exists():
            raise InputRejected("Name at least one host by which broker and API are reached: --host plant.example")
        created = authority.create(hosts=[*(host or ()), *_ALWAYS], clients=clients)
    _set_owner(created, owner)
    for pair in created:
        typer.echo(f"{pair.certificate} until {expires_at(pair.certificate):%Y-%m-%d}, its key {pair.key}")
    end = expires_at(authority.files.certificate)
    typer.echo(
        f"The CA certificate, {authority.files.certificate}, is valid until {end:%Y-%m-%d}: give it to clients. "
        f"With {authority.files.key} anyone can sign certificates; keep it off the network."
    )


def _set_owner(created: Iterable[CertificateFiles], owner: str | None) -> None:
    """Make the broker's user the owner of its key."""
    runs_as = broker_owner(owner)
    for pair in created:
        if pair.name == "broker" and runs_as is not None:
            try:
                shutil.chown(pair.key, runs_as)
            except (OSError, LookupError) as error:
                raise InputRejected(f"{pair.key} cannot be given to {runs_as}: {error}.") from None
