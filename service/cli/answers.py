"""``alarmcast admin answer`` and ``answers``: what operators say of expected alarms."""

from typing import Annotated

import typer

from service.cli.arguments import DataDir, MachineArgument, machine_id
from service.cli.client import api
from wire.enums import Answer


def answer(
    machine: MachineArgument,
    code: Annotated[int, typer.Argument(metavar="CODE", help="Alarm code.")],
    given: Annotated[Answer, typer.Argument(metavar="ANSWER", help="handled, useful or wrong.")],
    note: Annotated[str | None, typer.Option(help="What was done.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Answer an expected alarm of a machine, or its open notification."""
    identity = machine_id(machine)
    with api(data_dir) as client:
        stored = client.answers.answer_alarm(identity, code, given, note=note)
    typer.echo(f"Answer to {stored.text} of {machine}: {stored.answer}.")


def answers(data_dir: DataDir = None) -> None:
    """Print all answers as CSV, newest first."""
    with api(data_dir) as client:
        for chunk in client.answers.export():
            typer.echo(chunk, nl=False)
