"""The agent on a fake Windows: POSIX modules and functions are missing, and ``msvcrt`` locks files."""

import signal
import subprocess
import sys
from pathlib import Path

from edge_agent.status import inspect_spool
from tests.conftest import free_port, wait_until
from tests.system.conftest import clean_environment

FAKE = '''
import asyncio, fcntl, multiprocessing, os, shutil, signal, sys, types  # those of Python know msvcrt

def locking(file, mode, size):
    """Lock the first byte for this process alone, as Windows does."""
    fcntl.flock(file, fcntl.LOCK_UN if mode == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)

shutil.disk_usage = lambda path: types.SimpleNamespace(total=1 << 40, used=0, free=1 << 40)
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_UNLCK=0, LK_NBLCK=2)
for name in ("fcntl", "termios", "resource", "pwd", "grp"):
    sys.modules[name] = None
for name in ("statvfs", "posix_fallocate", "getuid", "geteuid", "fork", "fchmod", "chown", "getpgid", "killpg"):
    delattr(os, name)
signal.SIGBREAK = signal.SIGUSR1
for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGQUIT"):
    delattr(signal, name)
'''
IMPORT_ALL = """
import importlib, pkgutil, edge_agent
for module in pkgutil.walk_packages(edge_agent.__path__, "edge_agent."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
RUN = "import sys; from edge_agent.cli import main; sys.exit(main(sys.argv[1:]))"


def command(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", FAKE + code, *arguments]


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    whole = command(code, *arguments)
    return subprocess.run(whole, env=clean_environment(), capture_output=True, text=True, check=False)


def test_every_module_is_imported_without_posix() -> None:
    done = run(IMPORT_ALL)
    assert done.returncode == 0, done.stderr


def test_agent_locks_its_spool_and_stops_on_break(tmp_path: Path) -> None:
    log, spool = tmp_path / "alarms.csv", tmp_path / "spool"
    log.write_text("2026-11-16 08:00:00,139,1\n")
    options = {
        "site": "padova",
        "machine": "filler-1",
        "spool-path": spool,
        "broker-port": free_port(),
        "source-kind": "tail",
        "source-path": log,
        "stop-drain-seconds": 0,
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    agent = subprocess.Popen(command(RUN, "run", *flags), env=clean_environment(), stderr=subprocess.DEVNULL)

    def has_stored() -> bool:
        view = inspect_spool(spool)
        return view is not None and view.events == 1

    try:
        wait_until(has_stored, "the alarm is stored")
        second = run(RUN, "run", *flags)
        assert (second.returncode, "another agent is using it" in second.stderr) == (2, True)
        assert "running as process" in run(RUN, "status", "--spool-path", str(spool)).stdout
        agent.send_signal(signal.SIGUSR1)
        assert agent.wait(30) == 0
    finally:
        agent.kill()
        agent.wait()
    assert "not running" in run(RUN, "status", "--spool-path", str(spool)).stdout
