"""``alarmcast admin broker-init``: a guarded Mosquitto in two commands, this one and mosquitto itself."""

from pathlib import Path
from typing import Annotated

import typer

from service.broker.initial import SERVICE, Listener, find_plugin, write
from service.cli.arguments import BrokerOwner, broker_owner
from service.errors import Conflict, InputRejected

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
        f"{folder / 'service-password'}"
    )
    typer.echo(
        f"The password of admin, for mosquitto_ctrl, is in {folder / 'admin-password'}; keep it in a safe place "
        "and delete it here."
    )
