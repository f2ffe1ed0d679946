"""What several commands of ``alarmcast admin`` take, and how it is read."""

import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from pydantic import TypeAdapter, ValidationError

from service.errors import InputRejected
from wire.identity import MachineId
from wire.timestamps import UtcDatetime

DataDir = Annotated[Path | None, typer.Option(help="Where database and weights live.")]
Config = Annotated[
    Path | None,
    typer.Option(help="File of settings, as broker-init writes one; unless given, what ALARMCAST_CONFIG names."),
]
MachineArgument = Annotated[str, typer.Argument(metavar="SITE/MACHINE", help="Which machine.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="Which file.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the book of changes.")]
EdgeToml = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the agent's configuration here, password included.")
]
BrokerOwner = Annotated[
    str | None,
    typer.Option(
        "--broker-owner",
        help="User that runs the broker, by name or number, to whom its files are given; mosquitto for root.",
    ),
]
Serial = Annotated[str | None, typer.Option(help="Take only rows of this serial; needed if the file has several.")]

_MOMENT: TypeAdapter[datetime] = TypeAdapter(UtcDatetime)


def machine_id(text: str) -> MachineId:
    """Read SITE/MACHINE, or say what is wrong with it."""
    try:
        return MachineId.parse(text)
    except ValueError as error:
        raise InputRejected(str(error)) from None


def moment(text: str) -> datetime:
    """Read a moment, or say in a sentence how it is written."""
    try:
        return _MOMENT.validate_python(text)
    except ValidationError:
        raise InputRejected(f"{text!r} is no moment; write one like 2026-11-20T14:00:00Z.") from None


def read(file: Path) -> bytes:
    """Read a file, or say in a sentence why not."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputRejected(f"Cannot read {file}: {error.strerror}.") from None


def opened(file: Path) -> BinaryIO:
    """Open a file to be read, or say in a sentence why not."""
    try:
        return file.open("rb")
    except OSError as error:
        raise InputRejected(f"Cannot read {file}: {error.strerror}.") from None


def broker_owner(given: str | None) -> str | int | None:
    """Return whom the broker's files are given to; root gives them to mosquitto, which the broker becomes."""
    if given is not None:
        return int(given) if given.isdecimal() else given
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("mosquitto").pw_name
    except KeyError:
        return None


@contextmanager
def secret_file(path: Path | None) -> Iterator[Callable[[str], None]]:
    """Yield what keeps a secret in a new file that only its owner reads, or, without a file, prints it at the end.

    The file is made before the secret is: one that cannot be written must not cost a password. A secret is on
    disk as soon as it is kept, and one that is kept later takes its place. If nothing comes to be kept the file
    is taken away again.
    """
    kept: list[str] = []
    if path is None:
        try:
            yield kept.append
        finally:
            if kept:
                typer.echo(f"Shown once; keep it as edge.toml beside the machine:\n\n{kept[-1]}", nl=False)
        return
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputRejected(f"{path} is there already and is not overwritten; choose another file.") from None
    except OSError as error:
        raise InputRejected(f"Cannot write {path}: {error.strerror}.") from None
    try:
        with os.fdopen(file, "w", encoding="utf-8") as secret:

            def keep(text: str) -> None:
                kept.append(text)
                secret.seek(0)
                secret.write(text)
                secret.truncate()
                secret.flush()

            yield keep
    finally:
        if kept:
            typer.echo(f"The agent's configuration is in {path}; the password in it is shown nowhere else.")
        else:
            path.unlink(missing_ok=True)
