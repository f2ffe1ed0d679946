"""``alarmcast admin tls-init``, ``broker-init``, ``broker-repair`` and ``broker-adopt``."""

import os
import pwd
import re
import shutil
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from service.app.configuration import load_settings, sqlite_url
from service.broker_access.build import dynamic_security
from service.broker_access.certificates import Authority, CertificateFiles, expires_at, hosts_of
from service.broker_access.mosquitto_setup import (
    ADMIN_PASSWORD,
    DYNSEC_FILE,
    SERVICE,
    SERVICE_CONFIG,
    SERVICE_PASSWORD,
    Listener,
    find_plugin,
    put,
    repair,
    service_configuration,
    write,
)
from service.broker_access.service import adopt
from service.broker_access.store import CredentialStore
from service.cli.arguments import BrokerOwner, DataDir, broker_owner
from service.database.engine import Database
from service.errors import Conflict, InputRejected

_PLAIN, _SECURED = 1883, 8883
_HERE = ("localhost", "127.0.0.1", "::1")


def broker_init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder for the broker's files.")],
    *,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 1883, or 8883 with TLS.")] = None,
    address: Annotated[str | None, typer.Option(help="Address to listen on; all of them unless given.")] = None,
    tls: Annotated[
        Path | None, typer.Option(help="Folder of tls-init, as the broker sees it; it then speaks TLS.")
    ] = None,
    client_certificates: Annotated[
        bool, typer.Option("--client-certificates", help="Require client certificates of that authority.")
    ] = False,
    plugin: Annotated[
        Path | None,
        typer.Option(help="Path of the plugin for the broker; searched on this computer unless given."),
    ] = None,
    seen_as: Annotated[
        Path | None, typer.Option(help="Where the broker will see FOLDER, in a container for one; FOLDER.")
    ] = None,
    owner: BrokerOwner = None,
) -> None:
    """Write mosquitto.conf, the initial dynsec state, two passwords and the service's settings, all new."""
    if client_certificates and tls is None:
        raise InputRejected(
            "Client certificates need TLS: give --tls, a folder created by alarmcast admin tls-init."
        )
    is_here = seen_as is None  # else the broker and perhaps the service see other paths than we do
    if tls is not None and is_here:
        tls = tls.resolve()  # the broker may be started in another folder
        if not (tls / "broker.pem").exists():
            raise InputRejected(
                f"There is no {tls / 'broker.pem'}. Create it first: alarmcast admin tls-init {tls}"
            )
    runs_as = broker_owner(owner)
    listener = Listener(port or (_SECURED if tls else _PLAIN), address, tls, client_certificates)
    service_config = folder / SERVICE_CONFIG
    try:
        write(folder, listener, seen_as=seen_as or folder.resolve(), plugin=plugin or find_plugin(), owner=runs_as)
        if is_here:
            text = service_configuration(folder.resolve(), listener, public_host=_public_host(tls))
            put(service_config, text, 0o644)
    except FileExistsError as error:
        raise Conflict(
            f"{error.filename} already exists and is not overwritten. Choose another folder, or move it away."
        ) from None
    except (OSError, LookupError) as error:
        raise InputRejected(f"Cannot write to {folder}: {error}.") from None
    typer.echo(f"Start the broker: mosquitto -c {folder / 'mosquitto.conf'}")
    if is_here:
        _note_missing_access(runs_as, [folder, *([tls] if tls else [])])
        typer.echo(f"Configure the service: export ALARMCAST_CONFIG={service_config.resolve()}")
    else:
        typer.echo(
            f"Give the service: ALARMCAST_BROKER_USERNAME={SERVICE} and ALARMCAST_BROKER_PASSWORD, which is in "
            f"{folder / SERVICE_PASSWORD}"
        )
    typer.echo(
        f"The password of admin, for mosquitto_ctrl, is in {folder / ADMIN_PASSWORD}; keep it in a safe place "
        "and delete it here."
    )


def _public_host(tls: Path | None) -> str | None:
    """Return the broker's host name for machines: the first of its certificate that is not local."""
    if tls is None:
        return None
    return next((host for host in hosts_of(tls / "broker.pem") if host not in _HERE), None)


def _note_missing_access(owner: str | int | None, folders: Iterable[Path]) -> None:
    """Warn if the broker's user cannot enter a folder: started by root, Mosquitto switches to that user."""
    if owner is None or os.getuid() != 0:
        return
    try:
        account = pwd.getpwuid(owner) if isinstance(owner, int) else pwd.getpwnam(owner)
    except KeyError:
        return  # a number without a name
    paths = dict.fromkeys(path for folder in folders for path in (folder.resolve(), *folder.resolve().parents))
    closed = next((path for path in paths if not _may_enter(account, path.stat())), None)
    if closed is not None:
        typer.echo(
            f"Note: Mosquitto started by root runs as {account.pw_name}, which cannot enter {closed}. Choose "
            f"another folder, permit it (chmod o+x {closed}), or name another user with --broker-owner.",
            err=True,
        )


def _may_enter(account: pwd.struct_passwd, status: os.stat_result) -> bool:
    if account.pw_uid == 0:
        return True
    if status.st_uid == account.pw_uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid in os.getgrouplist(account.pw_name, account.pw_gid):
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def broker_repair(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The broker's folder, created by broker-init.")],
) -> None:
    """Recreate a damaged dynsec state for the passwords in FOLDER; first stop the broker."""
    try:
        damaged = repair(folder, at=datetime.now(UTC))
    except OSError as error:
        raise InputRejected(f"{folder / 'data' / DYNSEC_FILE} cannot be repaired: {error}.") from None
    if damaged is not None:
        typer.echo(f"The damaged file is kept as {damaged}.")
    typer.echo(f"Start the broker: mosquitto -c {folder / 'mosquitto.conf'}")
    typer.echo(
        "All machine credentials are lost. GET /v1/status lists the machines that are locked out; "
        "issue new credentials to each: alarmcast admin machine rotate SITE/MACHINE --edge-toml FILE"
    )


def broker_adopt(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it only show what would be done.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Let this database manage a broker that belonged to another; unknown machines are disabled there."""
    settings = load_settings(data_dir=data_dir)
    security = dynamic_security(settings)
    if security is None:
        raise InputRejected("The setting broker_dynamic_security is off, so there is nothing to adopt.")
    database = Database(settings.database_url or sqlite_url(settings.data_dir), read_only=True)
    try:
        if (database.is_sqlite and not database.exists) or not database.schema().is_current:
            raise InputRejected("The database is empty or of another version. Start the service on it first.")
        credentials, snapshot = CredentialStore(database), security.snapshot()
        if credentials.known_installation() is None:
            raise InputRejected(
                "The database has not been used with a secured broker yet. Start the service on it first."
            )
        known = {credential.name for credential in credentials.all()}
        enabled = {name for name, client in snapshot.clients.items() if client.enabled}
        typer.echo(
            f"The broker has {len(enabled)} enabled machines; the database knows {len(enabled & known)} of them."
        )
        if not yes:
            typer.echo("The others would be disabled; they keep their passwords. To do it: add --yes")
            return
        unknown = adopt(credentials, security)
    finally:
        database.close()
    typer.echo(f"The database manages the broker now. {len(unknown)} machines were disabled there.")
    for name in unknown:
        typer.echo(f"  {name}")


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
