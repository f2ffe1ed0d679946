"""``alarmcast admin broker-init``: a guarded Mosquitto in two commands, this one and mosquitto itself."""

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Annotated

import typer

from service.broker.initial import MEMORY, SERVICE, Listener, configuration, find_plugin, security
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
    admin_password, service_password = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    listener = Listener(port or (_SECURED if tls else _PLAIN), address, tls, client_certificates)
    data = (seen_as or folder.resolve()) / "data"
    config = configuration(listener, data=data, plugin=plugin or find_plugin())
    memory = security(admin_password=admin_password, service_password=service_password)
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True, mode=0o700)
        _put(folder / "mosquitto.conf", config, 0o644)
        _put(folder / "data" / MEMORY, json.dumps(memory, indent=2) + "\n", 0o600)
        _put(folder / "admin-password", admin_password + "\n", 0o600)
        _put(folder / "service-password", service_password + "\n", 0o600)
        runs_as = broker_owner(owner)
        if runs_as is not None:
            for path in (folder / "data", folder / "data" / MEMORY):
                shutil.chown(path, runs_as)
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


def _put(path: Path, text: str, mode: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
