"""What several commands of ``alarmcast admin`` take, and how it is read."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from pydantic import TypeAdapter, ValidationError

from service.errors import InputRejected
from wire.identity import MachineId
from wire.moment import Moment

DataDir = Annotated[Path | None, typer.Option(help="Where database and weights live.")]
MachineArgument = Annotated[str, typer.Argument(metavar="SITE/MACHINE", help="Which machine.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="Which file.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the book of changes.")]
Serial = Annotated[str | None, typer.Option(help="Take only rows of this serial.")]

_MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)


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
