"""Recreate a damaged ``dynamic-security.json``, without which the broker refuses all clients.

Mosquitto 2.0.11 writes the file in place: after a power cut it may be empty or incomplete, and its password hashes
are stored nowhere else. So only admin and service get access again, with their old passwords; every machine needs
new credentials.
"""

import json
import os
import secrets
import shutil
from datetime import datetime
from pathlib import Path

from service.broker_access.mosquitto_setup import ADMIN_PASSWORD, DYNSEC_FILE, SERVICE_PASSWORD, initial_state, put
from service.errors import Conflict, InputRejected


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
