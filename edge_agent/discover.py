"""``alarmcast-edge discover``: browse a server and write an ``edge.toml`` with what looks like alarms."""

import csv
import io
from importlib import import_module
from pathlib import Path

from edge_agent.errors import ConfigRejected, EdgeError
from edge_agent.sources.discovery import Access, Proposal, toml_text
from edge_agent.sources.signals import Unreachable

_EXTRAS = {"opc.tcp": "opcua", "modbus": "modbus", "mqtt": "mqtt", "mqtts": "mqtt"}


def discover(access: Access, *, seconds: float, out: Path) -> int:
    """Write the configuration and its code map to new files; return 0 if something was found."""
    extra = _EXTRAS.get(access.url.partition("://")[0])
    if extra is None:
        raise ConfigRejected(
            f"Cannot browse {access.url}: give an address like opc.tcp://192.168.0.10:4840, "
            "modbus://192.168.0.10:502 or mqtt://192.168.0.10:1883."
        )
    codes = out.with_name(f"{out.stem}-codes.csv")
    for file in (out, codes):
        if file.exists():
            raise ConfigRejected(f"{file} exists; give another file to --out.")
    try:
        module = import_module(f"edge_agent.sources.{extra}_browse")
    except ModuleNotFoundError:
        raise ConfigRejected(
            f"Browsing needs a library that is not installed. Install it with: pip install 'alarmcast[{extra}]'."
        ) from None
    try:
        proposal: Proposal = module.propose(access, seconds)
    except Unreachable as error:
        raise EdgeError(f"Cannot read {access.url}: {error}. Check address, user and security settings.") from None
    print(proposal.summary)  # noqa: T201
    if not proposal.table:
        print(proposal.hint)  # noqa: T201
        return 1
    try:
        out.write_text(edge_toml(proposal, codes), encoding="utf-8")
        if proposal.names:
            codes.write_text(code_map(proposal), encoding="utf-8")
    except OSError as error:
        raise EdgeError(f"Cannot write {out}: {error.strerror}. Give a writable file to --out.") from None
    print(f"{out} is written; correct site and machine, then: alarmcast-edge try --config {out}")  # noqa: T201
    return 0


def edge_toml(proposal: Proposal, codes: Path) -> str:
    """Return the configuration of a proposal."""
    lines = ['site = "plant"             # correct both names', 'machine = "machine-1"', "", "[broker]"]
    lines += ['host = "127.0.0.1"         # the broker of Alarmcast', "", "[source]", f'kind = "{proposal.kind}"']
    if proposal.names:
        lines.append(
            f"codes = {toml_text(str(codes.absolute()))}  # the numbers of named alarms; change them there"
        )
    return "\n".join([*lines, "", f"[{proposal.kind}]", *proposal.table]) + "\n"


def code_map(proposal: Proposal) -> str:
    """Return the rows of a code map; names are numbered from 1."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "code"])
    writer.writerows((name, number) for number, name in enumerate(proposal.names, 1))
    return text.getvalue()
