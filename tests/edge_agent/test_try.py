"""``alarmcast-edge try``: shows alarms as they would be sent, and leaves no trace."""

import subprocess
import sys
from pathlib import Path

from tests.system.conftest import clean_environment

CONFIG = """
site = "padova"
machine = "filler-1"
[source]
kind = "tail"
path = "{log}"
timezone = "Europe/Rome"
[spool]
path = "{spool}"
[tail]
delimiter = ";"
time = "Zeit"
code = "Nr"
text = "Text"
state = "Status"
"""


def test_alarms_are_shown_and_nothing_is_stored(tmp_path: Path) -> None:
    log, spool = tmp_path / "log.csv", tmp_path / "spool"
    rows = [
        "Zeit;Nr;Text;Status",
        "2026-11-16 08:00:00;139;;1",
        "2026-11-16 08:00:01;F7;Door open;1",
        "2026-11-16 08:00:01;139;;0",
        "x;y;z;1",
    ]
    log.write_text("\n".join([*rows, ""]))
    config = tmp_path / "edge.toml"
    config.write_text(CONFIG.format(log=log, spool=spool))
    command = [sys.executable, "-m", "edge_agent", "try", "--config", str(config), "--alarms", "2"]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0][:2] == ["skipped", "byte"]
    assert (lines[1][0], lines[1][2:]) == ("new", ["is", "F7:", "Door", "open"])
    assert lines[2] == ["raised", "2026-11-16T07:00:00.000Z", "139"]
    assert lines[3] == ["raised", "2026-11-16T07:00:01.000Z", lines[1][1]]
    assert lines[4] == ["cleared", "2026-11-16T07:00:01.000Z", "139"]
    assert not list(tmp_path.glob("spool*"))
