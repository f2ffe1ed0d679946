"""``alarmcast admin broker-init``: a guarded Mosquitto in two commands, this one and mosquitto itself.

And ``broker-mend``, for one that lets nobody in any more because its memory was damaged.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from service.bootstrap.configuration import dynamic_security, load_settings, sqlite_url
from service.broker.initial import ADMIN_PASSWORD, MEMORY, SERVICE, SERVICE_PASSWORD, Listener, find_plugin, write
from service.broker.mending import mend
from service.cli.arguments import BrokerOwner, DataDir, broker_owner
from service.errors import Conflict, InputRejected
from service.flows.credentials import adopt
from service.store.credentials import CredentialStore
from service.store.engine import Database

_PLAIN, _SECURED = 1883, 8883


def broker_init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder for the broker's files.")],
    *,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 1883, or 8883 with TLS.")] = None,
    address: Annotated[str | None, typer.Option(help="Address to listen on; all of them unless given.")] = None,
    tls: Annotated[
        Path | None, typer.Option(help="Folder of tls-init, as the broker sees it; it then speaks TLS.")
    ] = None,
    client_certificates: Annotated[
        bool, typer.Option("--client-certificates", help="Let in only who shows a certificate of that authority.")
    ] = False,
    plugin: Annotated[
        Path | None, typer.Option(help="Where the broker finds the plugin; looked for here.")
    ] = None,
    seen_as: Annotated[
        Path | None, typer.Option(help="Where the broker will see FOLDER, in a container for one; FOLDER.")
    ] = None,
    owner: BrokerOwner = None,
) -> None:
    """Write mosquitto.conf, the plugin's first memory and two passwords; nothing that is there is overwritten."""
    if client_certificates and tls is None:
        raise InputRejected("Client certificates need TLS: give --tls, a folder made by alarmcast admin tls-init.")
    listener = Listener(port or (_SECURED if tls else _PLAIN), address, tls, client_certificates)
    try:
        write(
            folder,
            listener,
            seen_as=seen_as or folder.resolve(),
            plugin=plugin or find_plugin(),
            owner=broker_owner(owner),
        )
    except FileExistsError as error:
        raise Conflict(
            f"{error.filename} is there already and is not overwritten. Choose another folder, or move it away."
        ) from None
    except (OSError, LookupError) as error:
        raise InputRejected(f"Cannot write to {folder}: {error}.") from None
    typer.echo(f"Start the broker: mosquitto -c {folder / 'mosquitto.conf'}")
    typer.echo(
        f"Give the service: ALARMCAST_BROKER_USERNAME={SERVICE} and ALARMCAST_BROKER_PASSWORD, which is in "
        f"{folder / SERVICE_PASSWORD}"
    )
    typer.echo(
        f"The password of admin, for mosquitto_ctrl, is in {folder / ADMIN_PASSWORD}; keep it in a safe place "
        "and delete it here."
    )


def broker_mend(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The broker's folder, made by broker-init.")],
) -> None:
    """Write a damaged memory of the plugin anew, for the passwords in FOLDER; first stop the broker."""
    try:
        aside = mend(folder, at=datetime.now(UTC))
    except OSError as error:
        raise InputRejected(f"{folder / 'data' / MEMORY} cannot be mended: {error}.") from None
    if aside is not None:
        typer.echo(f"The damaged memory is in {aside}.")
    typer.echo(f"Start the broker: mosquitto -c {folder / 'mosquitto.conf'}")
    typer.echo(
        "It has forgotten every machine. The service says which are locked out, in warnings of GET /v1/status; "
        "issue new credentials to each: alarmcast admin machine rotate SITE/MACHINE --edge-toml FILE"
    )


def broker_adopt(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; otherwise only say what would be done.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Let this database manage a broker that belonged to another; machines it does not know are disabled there."""
    settings = load_settings(data_dir=data_dir)
    security = dynamic_security(settings)
    if security is None:
        raise InputRejected("The setting broker_dynamic_security is off, so there is nothing to adopt.")
    database = Database(settings.database_url or sqlite_url(settings.data_dir), read_only=True)
    try:
        if (database.is_sqlite and not database.exists) or not database.schema().is_current:
            raise InputRejected("The database is empty or of another version. Start the service on it first.")
        credentials, guarded = CredentialStore(database), security.look()
        if credentials.known_installation() is None:
            raise InputRejected("The database has not met a guarded broker yet. Start the service on it first.")
        known = {one.name for one in credentials.all()}
        admitted = {name for name, holder in guarded.holders.items() if holder.enabled}
        typer.echo(
            f"The broker lets in {len(admitted)} machines; the database knows {len(admitted & known)} of them."
        )
        if not yes:
            typer.echo("The others would be disabled; they keep their passwords. To do it: add --yes")
            return
        strangers = adopt(credentials, security)
    finally:
        database.close()
    typer.echo(f"The database manages the broker now. {len(strangers)} machines were disabled there.")
    for name in strangers:
        typer.echo(f"  {name}")
