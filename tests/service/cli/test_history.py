"""``alarmcast admin enrol --history`` and ``history load``: a preview first, and a question on a terminal."""

import os
import pty
import select
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.commands import alarmcast

FILLER = "padova/filler-1"
AT = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
WINCC = (
    "TimeString;MsgNumber;StateAfter;MsgClass;MsgText\n"
    f"{AT:%d.%m.%Y %H:%M:%S};139;1;1;Film torn\n{AT:%d.%m.%Y %H:%M:%S};139;0;1;Film torn\nx;139;1;1;Film torn\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "export.csv"
    file.write_text(WINCC)
    return file


def enrolled(tmp_path: Path) -> str:
    return alarmcast("admin", "machine", "list", "--data-dir", tmp_path / "data").stdout


def test_a_preview_shows_the_file_and_stores_nothing(tmp_path: Path, log: Path) -> None:
    options = ["--history", log, "--preset", "wincc", "--preview", "--data-dir", tmp_path / "data"]
    done = alarmcast("admin", "enrol", FILLER, *options)
    assert done.returncode == 0, done.stderr
    assert "export.csv: 4 lines, 1 alarms, from" in done.stdout
    assert f"line 2: {AT:%Y-%m-%d %H:%M:%S} alarm 139   <- {AT:%d.%m.%Y %H:%M:%S};139;1;1;Film torn" in done.stdout
    assert "139 Film torn: 1 rows" in done.stdout
    assert "line 4: 'x' is not a time like" in done.stdout
    assert "nothing was stored" in done.stdout
    assert FILLER not in enrolled(tmp_path)


def test_a_file_that_cannot_be_imported_is_refused_before_the_machine_is_enrolled(
    tmp_path: Path, log: Path
) -> None:
    done = alarmcast("admin", "enrol", FILLER, "--history", log, "--data-dir", tmp_path / "data")
    assert done.returncode != 0
    assert "It has the columns of the preset wincc: choose that." in done.stderr
    assert FILLER not in enrolled(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--preset", "scada"], "'scada' cannot be the preset of a history"),
        (["--column", "zeit=x"], "There is no --column zeit; give one of preset, delimiter"),
        (["--column", "time"], "--column time needs a key and a value, such as time=Zeit."),
        (["--code-map", "/nowhere.csv"], "Cannot read /nowhere.csv"),
    ],
)
def test_a_mistake_in_the_options_is_one_sentence(
    tmp_path: Path, log: Path, options: list[str], words: str
) -> None:
    done = alarmcast("admin", "enrol", FILLER, "--history", log, *options, "--data-dir", tmp_path / "data")
    assert done.returncode != 0
    assert words in done.stderr


def on_a_terminal(folder: Path, arguments: list[str], answers: list[tuple[str, str]]) -> str:
    """Run a command on a terminal and type each answer after its question; return what was shown."""
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "service", "admin", *arguments, "--data-dir", str(folder / "data")]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = ""
        while process.poll() is None or select.select([main], [], [], 0)[0]:
            if not select.select([main], [], [], 0.2)[0]:
                continue
            try:
                shown += os.read(main, 65536).decode(errors="replace")
            except OSError:  # its other end is closed
                break
            if answers and answers[0][0] in shown:
                os.write(main, (answers.pop(0)[1] + "\n").encode())
        process.wait()
    os.close(main)
    assert answers == []
    return shown


def test_on_a_terminal_the_serial_is_chosen_and_the_import_is_confirmed(tmp_path: Path) -> None:
    log = tmp_path / "two.csv"
    log.write_text("".join(f"{AT:%Y-%m-%d %H:%M:%S},{code},{code % 2}\n" for code in range(9)))
    arguments = ["enrol", FILLER, "--history", str(log)]
    serial, question = ("Serial of this machine", "1"), f"Import 4 alarms for {FILLER}?"
    refused = on_a_terminal(tmp_path, arguments, [serial, (question, "n")])
    assert "Nothing was stored." in refused
    assert FILLER not in enrolled(tmp_path)
    taken = on_a_terminal(tmp_path, arguments, [serial, (question, "y")])
    assert "4 events stored" in taken
    assert FILLER in enrolled(tmp_path)
    again = on_a_terminal(tmp_path, ["history", "load", FILLER, str(log), "--serial", "0", "--yes"], [])
    assert "5 events stored" in again
