"""A guarded Mosquitto's first files: who may manage it, what the service may do, and its configuration.

The plugin rewrites ``dynamic-security.json`` itself from then on; the service and ``mosquitto_ctrl`` tell it what.
"""

import base64
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from service.broker_access.dynamic_security import TOPIC, acls
from service.broker_access.models import Acl
from service.settings import PREFIX
from wire.topics import SHARED_EVENTS, Channel, every_machine

ADMIN, SERVICE = "admin", "alarmcast-service"
MEMORY = "dynamic-security.json"
ADMIN_PASSWORD, SERVICE_PASSWORD = "admin-password", "service-password"  # files
SERVICE_CONFIG = "alarmcast.env"
PLUGIN = "mosquitto_dynamic_security.so"
_CONTROL = f"{TOPIC.rpartition('/')[0]}/#"
_ITERATIONS, _SALT, _HASH = 101, 12, 64  # as the plugin has them; what is hashed are 256 random bits
# By default nobody may do anything, not even receive what a session of old asked for.
_DEFAULT = {"publishClientSend": False, "publishClientReceive": False, "subscribe": False, "unsubscribe": True}


@dataclass(frozen=True)
class Listener:
    """Where the broker listens; ``certificates`` is the folder of tls-init as the broker sees it."""

    port: int
    address: str | None = None
    certificates: Path | None = None
    wants_client_certificates: bool = False

    @property
    def host_from_here(self) -> str:
        """Where a client on the same computer finds it."""
        return "127.0.0.1" if self.address in (None, "", "0.0.0.0", "::") else str(self.address)  # noqa: S104

    def lines(self) -> Iterable[str]:
        """Write it as Mosquitto reads it."""
        yield f"listener {self.port}" + (f" {self.address}" if self.address else "")
        if self.certificates is not None:
            yield f"cafile {self.certificates / 'ca.pem'}"
            yield f"certfile {self.certificates / 'broker.pem'}"
            yield f"keyfile {self.certificates / 'broker.key'}"
            yield "tls_version tlsv1.2"
            yield f"require_certificate {str(self.wants_client_certificates).lower()}"


def write(folder: Path, listener: Listener, *, seen_as: Path, plugin: Path, owner: str | int | None) -> None:
    """Write all of it into a folder that the broker will see as ``seen_as``; what is there is not overwritten.

    ``data`` in it is the broker's own to write to, and is given to ``owner``.
    """
    admin_password, service_password = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    memory = security(admin_password=admin_password, service_password=service_password)
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    put(folder / "mosquitto.conf", configuration(listener, data=seen_as / "data", plugin=plugin), 0o644)
    put(data / MEMORY, json.dumps(memory, indent=2) + "\n", 0o600)
    put(folder / ADMIN_PASSWORD, admin_password + "\n", 0o600)
    put(folder / SERVICE_PASSWORD, service_password + "\n", 0o600)
    if owner is not None:
        for path in (data, data / MEMORY):
            shutil.chown(path, owner)


def service_configuration(folder: Path, listener: Listener, *, public_host: str | None) -> str:
    """Return the settings with which a service on this computer reaches the broker of a folder."""
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
    if listener.certificates is not None and listener.wants_client_certificates:
        pair = listener.certificates / "client-service"
        lines += [
            "# The service's own certificate, made by: alarmcast admin tls-init FOLDER --client service",
            f"{PREFIX}BROKER_TLS_CERT={pair}.pem",
            f"{PREFIX}BROKER_TLS_KEY={pair}.key",
        ]
    if public_host is not None:
        lines += ["# By which name machines reach the broker.", f"{PREFIX}BROKER_PUBLIC_HOST={public_host}"]
    return "\n".join(lines) + "\n"


def security(*, admin_password: str, service_password: str) -> dict[str, Any]:
    """Return the plugin's first memory: an admin for ``mosquitto_ctrl``, and the service."""
    manages = {Acl(kind, _CONTROL) for kind in ("publishClientSend", "publishClientReceive", "subscribePattern")}
    heard = {every_machine(channel) for channel in (Channel.EVENTS, Channel.STATE)}
    sent = {every_machine(channel) for channel in (Channel.ACKS, Channel.FORECAST, Channel.STATE)}
    serves = (
        manages
        | {Acl("publishClientSend", topic) for topic in sent}
        | {Acl(kind, topic) for topic in heard for kind in ("subscribeLiteral", "publishClientReceive")}
        | {Acl("subscribeLiteral", SHARED_EVENTS)}
        | {Acl(kind, "$SYS/#") for kind in ("subscribePattern", "publishClientReceive")}
    )
    return {
        "defaultACLAccess": _DEFAULT,
        "clients": [_client(ADMIN, admin_password), _client(SERVICE, service_password)],
        "groups": [],
        "roles": [{"rolename": ADMIN, "acls": acls(manages)}, {"rolename": SERVICE, "acls": acls(serves)}],
    }


def configuration(listener: Listener, *, data: Path, plugin: Path) -> str:
    """Return a ``mosquitto.conf``; the paths are those that the broker sees.

    ``data`` is the broker's own to write to: the plugin's memory lies there, beside sessions and queues.
    """
    template = files("service.broker_access").joinpath("mosquitto.conf.template").read_text(encoding="utf-8")
    return template.format(
        listener="\n".join(listener.lines()),
        plugin=plugin,
        security=data / MEMORY,
        data=f"{data}/",
    )


def find_plugin(exists: Callable[[Path], bool] = Path.exists) -> Path:
    """Return where the plugin is on this computer, or where the official image has it."""
    places = [*Path("/usr/lib").glob(f"*/{PLUGIN}"), Path("/usr/local/lib") / PLUGIN, Path("/usr/lib") / PLUGIN]
    return next((place for place in places if exists(place)), places[-1])


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
    """Write a file that was not there, and see it to the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(file)
