"""``alarmcast-edge discover``: browse a server and write an ``edge.toml`` with what looks like alarms."""

from pathlib import Path
from typing import TYPE_CHECKING

from edge_agent.errors import ConfigRejected, EdgeError

if TYPE_CHECKING:
    from edge_agent.sources.opcua_browse import Findings

_MAX_SIGNALS = 500


def discover(url: str, *, username: str | None, password: str | None, seconds: float, out: Path) -> int:
    """Write the configuration to a new file, and print what was found; return 0 if there is something."""
    if not url.startswith("opc.tcp://"):
        raise ConfigRejected(f"Cannot browse {url}: give an address like opc.tcp://192.168.0.10:4840.")
    if out.exists():
        raise ConfigRejected(f"{out} exists; give another file to --out.")
    try:
        from edge_agent.sources.opcua_browse import browse  # noqa: PLC0415
        from edge_agent.sources.signals import Unreachable  # noqa: PLC0415
    except ModuleNotFoundError:
        raise ConfigRejected(
            "Browsing needs a library that is not installed. Install it with: pip install 'alarmcast[opcua]'."
        ) from None
    try:
        findings = browse(url, username=username, password=password, seconds=seconds)
    except Unreachable as error:
        raise EdgeError(f"Cannot read {url}: {error}. Check address, user and security settings.") from None
    conditions = "no conditions" if findings.conditions is None else f"{len(findings.conditions)} conditions"
    print(  # noqa: T201
        f"{findings.browsed} nodes browsed: {conditions}, {len(findings.packml)} PackML folders, "
        f"{len(findings.tags)} tags that look like alarms"
    )
    is_empty = not (findings.conditions or findings.packml or findings.tags)
    if is_empty:
        print("nothing looks like an alarm; browse the server with UaExpert and see docs/connect/opcua.md")  # noqa: T201
        return 1
    try:
        out.write_text(edge_toml(url, username, findings), encoding="utf-8")
    except OSError as error:
        raise EdgeError(f"Cannot write {out}: {error.strerror}. Give a writable file to --out.") from None
    print(f"{out} is written; correct site and machine, then: alarmcast-edge try --config {out}")  # noqa: T201
    return 0


def edge_toml(url: str, username: str | None, findings: "Findings") -> str:
    """Return a configuration for the best that was found: conditions, else PackML, else tags."""
    lines = ['site = "plant"', 'machine = "machine-1"', "", "[broker]", 'host = "127.0.0.1"', ""]
    lines += ["[source]", 'kind = "opcua"', "", "[opcua]", f"url = {_text(url)}"]
    if username is not None:
        lines += [f"username = {_text(username)}  # the password: ALARMCAST_EDGE_SOURCE_PASSWORD"]
    if findings.conditions:
        lines += ['mode = "conditions"', *(f"# {name}" for name in sorted(findings.conditions))]
    elif findings.packml:
        (node, arrays), *others = findings.packml
        lines += ['mode = "packml"', f"node = {_text(node)}", f"arrays = [{', '.join(map(_text, arrays))}]"]
        lines += [f"# another machine: node = {_text(other)}" for other, _ in others]
    else:
        lines += ['mode = "tags"']
    prefix = "" if lines[-1] == 'mode = "tags"' else "# "
    for tag in findings.tags[:_MAX_SIGNALS]:
        meaning = "flag" if tag.is_flag else "code"
        hint = "" if tag.is_flag else "  # bits: one alarm per bit"
        entry = ["[[opcua.signals]]", f'as = "{meaning}"{hint}', f"node = {_text(tag.node)}"]
        name = [f"name = {_text(tag.path[:200])}"] if tag.is_flag else [f"# {tag.path}"]
        lines += ["", *(prefix + line for line in entry + name)]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Return a TOML string."""
    escaped = "".join(char if char.isprintable() and char not in '"\\' else f"\\u{ord(char):04x}" for char in text)
    return f'"{escaped}"'
