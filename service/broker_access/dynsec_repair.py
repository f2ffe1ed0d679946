"""A guarded Mosquitto's memory made anew, after a power cut has emptied it and the broker lets nobody in.

Mosquitto 2.0.11 writes ``dynamic-security.json`` in place: cut off at that moment, the file is empty or half
there. Whom it had let in is lost with it, and nobody else knows their passwords. So only those who manage the
broker come in again, with the passwords they have; every machine is found missing and needs new credentials.
"""

import json
import os
import secrets
import shutil
from datetime import datetime
from pathlib import Path

from service.broker_access.mosquitto_setup import ADMIN_PASSWORD, MEMORY, SERVICE_PASSWORD, put, security
from service.errors import Conflict, InputRejected


def repair(folder: Path, *, at: datetime) -> Path | None:
    """Write a new memory for the passwords in a folder of ``broker-init``; return where the damaged one is kept.

    One that is whole is left alone. The new one belongs to whom the folder of the broker's data belongs.
    """
    data, memory = folder / "data", folder / "data" / MEMORY
    if not data.is_dir():
        raise InputRejected(f"{data} is no folder. Name one that alarmcast admin broker-init has made.")
    if _is_whole(memory):
        raise Conflict(
            f"{memory} is whole and is left alone: a new one would lock every machine out. "
            "If the broker refuses the service all the same, the two have different passwords."
        )
    passwords = {"service_password": _service_password(folder), "admin_password": _admin_password(folder)}
    fresh = data / f"{MEMORY}.new"
    fresh.unlink(missing_ok=True)  # of a try that was cut off
    put(fresh, json.dumps(security(**passwords), indent=2) + "\n", 0o600)
    owner = data.stat()
    shutil.chown(fresh, owner.st_uid, owner.st_gid)
    aside = _put_aside(memory, at)
    fresh.rename(memory)
    return aside


def _is_whole(memory: Path) -> bool:
    try:
        found = json.loads(memory.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(found, dict) and bool(found.get("clients"))


def _service_password(folder: Path) -> str:
    file = folder / SERVICE_PASSWORD
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise InputRejected(
            f"There is no {file}. Put the password there that the service has, ALARMCAST_BROKER_PASSWORD."
        ) from None


def _admin_password(folder: Path) -> str:
    """Return the password of who manages the broker by hand; a new one if it was taken away, as it should be."""
    file = folder / ADMIN_PASSWORD
    if not file.exists():
        put(file, secrets.token_urlsafe(32) + "\n", 0o600)
    return file.read_text(encoding="utf-8").strip()


def _put_aside(memory: Path, at: datetime) -> Path | None:
    if not memory.exists():
        return None
    aside = memory.with_name(f"{memory.name}.damaged-{at:%Y%m%dT%H%M%S%f}")
    os.link(memory, aside)  # never in the place of another one; the new memory then takes the old name
    return aside
