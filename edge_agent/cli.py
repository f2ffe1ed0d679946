"""``alarmcast-edge``: run an agent, try its source, show its status, check its setup, or simulate a log."""

import argparse
import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from edge_agent import __version__, settings
from edge_agent.errors import EdgeError
from edge_agent.logs import set_up_logs
from wire.fast_start import gc_disabled


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run the command; errors end in one sentence and exit code 2."""
    options = _parser().parse_args(arguments)
    set_up_logs()
    try:
        return int(options.command(options))
    except EdgeError as error:
        print(f"alarmcast-edge: {error}", file=sys.stderr)  # noqa: T201
        return 2


def _run(options: argparse.Namespace) -> int:
    with gc_disabled():
        from edge_agent import agent  # noqa: PLC0415 - simulate and --help need neither paho nor a spool

    machines = settings.load_all(options.config, _flags(options))
    set_up_logs(
        secrets=[secret for one in machines for secret in (one.broker_password, one.source_password)],
        machines=[f"{one.site}/{one.machine}" for one in machines] if len(machines) > 1 else (),
    )
    agent.run(machines)
    return 0


def _status(options: argparse.Namespace) -> int:
    from edge_agent.status_cli import print_status  # noqa: PLC0415

    return print_status(settings.spool_path(options.config, _flags(options)), as_json=options.json)


def _doctor(options: argparse.Namespace) -> int:
    from edge_agent.doctor import examine  # noqa: PLC0415

    logging.disable(logging.CRITICAL)  # the findings report errors
    marks = {True: "well ", False: "WRONG", None: "look "}
    wrong = False
    for finding in examine(options.config, _flags(options)):
        wrong = wrong or finding.ok is False
        print(f"{marks[finding.ok]}  {finding.check}: {finding.message}", flush=True)  # noqa: T201
    return int(wrong)


def _try(options: argparse.Namespace) -> int:
    from edge_agent.try_cli import print_alarms  # noqa: PLC0415

    loaded = settings.load(options.config, _flags(options))
    set_up_logs(secrets=[loaded.broker_password, loaded.source_password])
    return print_alarms(loaded, alarms=options.alarms, seconds=options.seconds)


def _discover(options: argparse.Namespace) -> int:
    from edge_agent.discover import discover  # noqa: PLC0415
    from edge_agent.sources.discovery import Access  # noqa: PLC0415

    password = os.environ.get(f"{settings.ENV_PREFIX}SOURCE_PASSWORD")
    access = Access(options.url, options.username, password, options.tls_ca)
    return discover(access, seconds=options.seconds, out=options.out)


def _flags(options: argparse.Namespace) -> dict[str, str | None]:
    return {name: getattr(options, name) for name in settings.Settings.model_fields}


def _simulate(options: argparse.Namespace) -> int:
    from edge_agent.simulator.log_file import write_log  # noqa: PLC0415

    try:
        rows = write_log(
            options.out,
            machines=options.machines,
            days=options.days,
            end=options.end or datetime.now(UTC),
            seed=options.seed,
        )
    except OSError as error:
        raise EdgeError(f"Cannot write {options.out}: {error.strerror}. Give a writable file to --out.") from None
    print(f"{rows} alarms of {options.machines} machines over {options.days:g} days in {options.out}")  # noqa: T201
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="alarmcast-edge", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    status = commands.add_parser("status", help="show the status of the agent and its spool")
    status.add_argument("--json", action="store_true", help="for programs")
    doctor = commands.add_parser("doctor", help="check everything an agent needs")
    trial = commands.add_parser("try", help="show the next alarms of the source, and send and store nothing")
    trial.add_argument("--alarms", type=_positive, default=20, help="stop after as many; 20 unless given")
    trial.add_argument("--seconds", type=_positive, default=60, help="stop after as many; 60 unless given")
    run = commands.add_parser("run", help="send a machine's alarms to the service")
    for command, function in ((run, _run), (trial, _try), (status, _status), (doctor, _doctor)):
        _add_settings(command)
        command.set_defaults(command=function)

    discover = commands.add_parser(
        "discover", help="browse a controller or a broker and write an edge.toml for its alarms"
    )
    discover.add_argument(
        "url", metavar="URL", help="opc.tcp://HOST:4840, modbus://HOST:502/UNIT or mqtt://HOST:1883"
    )
    discover.add_argument("--username", help="the password: ALARMCAST_EDGE_SOURCE_PASSWORD")
    discover.add_argument("--tls-ca", type=Path, metavar="FILE", help="authority of an mqtts:// broker")
    discover.add_argument("--seconds", type=_positive, default=60, help="how long to watch; 60 unless given")
    discover.add_argument(
        "--out", type=Path, default=Path("edge.toml"), metavar="FILE", help="edge.toml unless given"
    )
    discover.set_defaults(command=_discover)

    simulate = commands.add_parser("simulate", help="write the log of a simulated fleet")
    simulate.add_argument("--days", type=_positive_float, default=90.0)
    simulate.add_argument("--machines", type=_positive, default=6)
    simulate.add_argument("--seed", type=int, default=1)
    simulate.add_argument("--end", type=_moment, help="last moment of the log, ISO 8601; now unless given")
    simulate.add_argument("--out", type=Path, required=True, metavar="FILE", help="CSV; gzipped if it ends in .gz")
    simulate.set_defaults(command=_simulate)
    return parser


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config", type=Path, metavar="FILE", help="an edge.toml; flags and variables override it"
    )
    for name, field in settings.Settings.model_fields.items():
        flag = f"--{name.replace('_', '-')}"
        variable = f"{settings.ENV_PREFIX}{name.upper()}"
        command.add_argument(flag, dest=name, metavar="X", help=f"{field.description} [{variable}]")


def _positive(text: str) -> int:
    if not text.isdigit() or not 1 <= len(text) <= 4 or int(text) < 1:  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 9999")
    return int(text)


def _positive_float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 10_000:  # noqa: PLR2004 - centuries of alarms are a typing mistake
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days between 0 and 10000")
    return value


def _moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-11-16T00:00:00Z") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
