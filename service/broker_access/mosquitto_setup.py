"""Write the initial files of a Mosquitto with dynamic security: configuration, dynsec state and passwords.

From then on the plugin rewrites ``dynamic-security.json`` itself.
"""

import base64
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from service.broker_access.dynamic_security import TOPIC, acls
from service.broker_access.models import Acl
from service.errors import Conflict, InputRejected
from service.settings import PREFIX
from wire.topics import SHARED_EVENTS, Channel, every_machine

ADMIN, SERVICE = "admin", "alarmcast-service"
DYNSEC_FILE = "dynamic-security.json"
ADMIN_PASSWORD, SERVICE_PASSWORD = "admin-password", "service-password"  # files
SERVICE_CONFIG = "alarmcast.env"
PLUGIN = "mosquitto_dynamic_security.so"
_CONTROL = f"{TOPIC.rpartition('/')[0]}/#"
_ITERATIONS, _SALT, _HASH = 101, 12, 64  # as in the plugin; the passwords are 256 random bits
# By default nothing is allowed, not even receiving messages of an old session.
_DEFAULT = {"publishClientSend": False, "publishClientReceive": False, "subscribe": False, "unsubscribe": True}


@dataclass(frozen=True)
class Listener:
    """A listener of the broker; ``certificates`` is the folder of tls-init as the broker sees it."""

    port: int
    address: str | None = None
    certificates: Path | None = None
    require_client_certificates: bool = False

    @property
    def host_from_here(self) -> str:
        """The host for clients on the same computer."""
        return "127.0.0.1" if self.address in (None, "", "0.0.0.0", "::") else str(self.address)  # noqa: S104

    def lines(self) -> Iterable[str]:
        """Yield the lines of mosquitto.conf."""
        yield f"listener {self.port}" + (f" {self.address}" if self.address else "")
        if self.certificates is not None:
            yield f"cafile {self.certificates / 'ca.pem'}"
            yield f"certfile {self.certificates / 'broker.pem'}"
            yield f"keyfile {self.certificates / 'broker.key'}"
            yield "tls_version tlsv1.2"
            yield f"require_certificate {str(self.require_client_certificates).lower()}"


def write(folder: Path, listener: Listener, *, seen_as: Path, plugin: Path, owner: str | int | None) -> None:
    """Write all files into a folder that the broker sees as ``seen_as``; nothing is overwritten.

    The subfolder ``data`` is the broker's and gets the owner ``owner``.
    """
    admin_password, service_password = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    state = initial_state(admin_password=admin_password, service_password=service_password)
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    put(folder / "mosquitto.conf", configuration(listener, data=seen_as / "data", plugin=plugin), 0o644)
    put(data / DYNSEC_FILE, json.dumps(state, indent=2) + "\n", 0o600)
    put(folder / ADMIN_PASSWORD, admin_password + "\n", 0o600)
    put(folder / SERVICE_PASSWORD, service_password + "\n", 0o600)
    if owner is not None:
        for path in (data, data / DYNSEC_FILE):
            shutil.chown(path, owner)


def service_configuration(folder: Path, listener: Listener, *, public_host: str | None) -> str:
    """Return the settings of a service on this computer for the broker of a folder."""
    lines = [
        "# How the service reaches this broker. Written by: alarmcast admin broker-init",
        f"# Name this file in {PREFIX}CONFIG, or with --config. Variables of the environment win over it.",
        f"{PREFIX}BROKER_HOST={listener.host_from_here}",
        f"{PREFIX}BROKER_PORT={listener.port}",
        f"{PREFIX}BROKER_USERNAME={SERVICE}",
        f"{PREFIX}BROKER_PASSWORD_FILE={folder / SERVICE_PASSWORD}",
        f"{PREFIX}BROKER_DYNAMIC_SECURITY=on",
    ]
    if listener.certificates is not None:
        lines += [f"{PREFIX}BROKER_TLS=true", f"{PREFIX}BROKER_TLS_CA={listener.certificates / 'ca.pem'}"]
    if listener.certificates is not None and listener.require_client_certificates:
        pair = listener.certificates / "client-service"
        lines += [
            "# The service's own certificate, made by: alarmcast admin tls-init FOLDER --client service",
            f"{PREFIX}BROKER_TLS_CERT={pair}.pem",
            f"{PREFIX}BROKER_TLS_KEY={pair}.key",
        ]
    if public_host is not None:
        lines += ["# By which name machines reach the broker.", f"{PREFIX}BROKER_PUBLIC_HOST={public_host}"]
    return "\n".join(lines) + "\n"


def initial_state(*, admin_password: str, service_password: str) -> dict[str, Any]:
    """Return the initial dynsec state: an admin for ``mosquitto_ctrl``, and the service."""
    control = {Acl(kind, _CONTROL) for kind in ("publishClientSend", "publishClientReceive", "subscribePattern")}
    received = {every_machine(channel) for channel in (Channel.EVENTS, Channel.STATE)}
    sent = {every_machine(channel) for channel in (Channel.ACKS, Channel.FORECAST, Channel.STATE)}
    service = (
        control
        | {Acl("publishClientSend", topic) for topic in sent}
        | {Acl(kind, topic) for topic in received for kind in ("subscribeLiteral", "publishClientReceive")}
        | {Acl("subscribeLiteral", SHARED_EVENTS)}
        | {Acl(kind, "$SYS/#") for kind in ("subscribePattern", "publishClientReceive")}
    )
    return {
        "defaultACLAccess": _DEFAULT,
        "clients": [_client(ADMIN, admin_password), _client(SERVICE, service_password)],
        "groups": [],
        "roles": [{"rolename": ADMIN, "acls": acls(control)}, {"rolename": SERVICE, "acls": acls(service)}],
    }


def configuration(listener: Listener, *, data: Path, plugin: Path) -> str:
    """Return a ``mosquitto.conf``; paths are as the broker sees them.

    ``data`` holds the dynsec state, sessions and queues.
    """
    template = files("service.broker_access").joinpath("mosquitto.conf.template").read_text(encoding="utf-8")
    return template.format(
        listener="\n".join(listener.lines()),
        plugin=plugin,
        security=data / DYNSEC_FILE,
        data=f"{data}/",
    )


def find_plugin(exists: Callable[[Path], bool] = Path.exists) -> Path:
    """Return the path of the plugin on this computer, or its path in the official image."""
    paths = [*Path("/usr/lib").glob(f"*/{PLUGIN}"), Path("/usr/local/lib") / PLUGIN, Path("/usr/lib") / PLUGIN]
    return next((path for path in paths if exists(path)), paths[-1])


def _client(name: str, password: str) -> dict[str, Any]:
    salt = os.urandom(_SALT)
    hashed = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ITERATIONS, _HASH)
    return {
        "username": name,
        "roles": [{"rolename": name}],
        "password": base64.b64encode(hashed).decode(),
        "salt": base64.b64encode(salt).decode(),
        "iterations": _ITERATIONS,
    }


def put(path: Path, text: str, mode: int) -> None:
    """Write a new file and sync it to disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(file)


def repair(folder: Path, *, at: datetime) -> Path | None:
    """Write a new file for the passwords in a folder of ``broker-init``; return where the damaged one is kept.

    A valid file is not changed. The new one gets the owner of the data folder.
    """
    data, path = folder / "data", folder / "data" / DYNSEC_FILE
    if not data.is_dir():
        raise InputRejected(f"{data} is not a folder. Name one that alarmcast admin broker-init has created.")
    if _is_valid(path):
        raise Conflict(
            f"{path} is valid and is not changed: a new one would lock out every machine. "
            "If the broker still refuses the service, they have different passwords."
        )
    passwords = {"service_password": _service_password(folder), "admin_password": _admin_password(folder)}
    temporary = data / f"{DYNSEC_FILE}.new"
    temporary.unlink(missing_ok=True)  # left by an interrupted run
    put(temporary, json.dumps(initial_state(**passwords), indent=2) + "\n", 0o600)
    owner = data.stat()
    shutil.chown(temporary, owner.st_uid, owner.st_gid)
    damaged = _keep_damaged(path, at)
    temporary.rename(path)
    return damaged


def _is_valid(path: Path) -> bool:
    try:
        state = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(state, dict) and bool(state.get("clients"))


def _service_password(folder: Path) -> str:
    file = folder / SERVICE_PASSWORD
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise InputRejected(
            f"There is no {file}. Write the service's password into it, ALARMCAST_BROKER_PASSWORD."
        ) from None


def _admin_password(folder: Path) -> str:
    """Return the admin's password; a new one if its file was deleted, as recommended."""
    file = folder / ADMIN_PASSWORD
    if not file.exists():
        put(file, secrets.token_urlsafe(32) + "\n", 0o600)
    return file.read_text(encoding="utf-8").strip()


def _keep_damaged(path: Path, at: datetime) -> Path | None:
    if not path.exists():
        return None
    damaged = path.with_name(f"{path.name}.damaged-{at:%Y%m%dT%H%M%S%f}")
    os.link(path, damaged)  # never overwrites another one; the new file then takes the old name
    return damaged
