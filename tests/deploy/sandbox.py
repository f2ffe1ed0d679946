"""Holds a process as a container would: as nobody, on a root it cannot write to, with folders of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

USER = 10001  # the Dockerfile's; a test compares

# Bound onto themselves, the folders are mounts of their own and stay writable when the rest no longer is.
_SCRIPT = """
while [ "$1" != -- ]; do mount --bind "$1" "$1"; shift; done; shift
for mounted in /tmp /var/tmp /home; do
  if mountpoint -q "$mounted"; then mount -o remount,bind,ro "$mounted"; fi
done
mount -o remount,bind,ro /
exec "$@"
"""


def confined(words: Sequence[str | Path], *writable: Path) -> list[str]:
    """Return a command that runs ``words`` where only the folders named can be written to."""
    lent = [str(folder) for folder in writable]
    inside = [*without_privileges(), *map(str, words)]
    return [*_namespace(), "sh", "-ec", _SCRIPT, "sh", *lent, "--", *inside]


def hand_over(folder: Path) -> Path:
    """Make a folder that the confined user owns, and can reach."""
    folder.mkdir(exist_ok=True)
    if os.getuid() == 0:
        os.chown(folder, USER, USER)
        let_pass(folder.parent)
    return folder


def let_pass(folder: Path) -> None:
    """Let others go through a folder of pytest's, which are the owner's alone."""
    for one in (folder, *folder.parents):
        if one.stat().st_uid == os.getuid() and one.stat().st_mode & 0o055 != 0o055:
            one.chmod(one.stat().st_mode | 0o055)


def is_open_to_all(folder: Path) -> bool:
    """Say whether every user may read a folder and pass all folders above it."""
    return all(one.stat().st_mode & 0o005 == 0o005 for one in (folder, *folder.parents))


def without_privileges() -> list[str]:
    """Return what to put before a command so that it runs as nobody."""
    plain = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    if os.getuid() == 0:  # who is not has only one user in the namespace
        plain += [f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    return [*plain, "--"]


@cache
def is_possible() -> bool:
    """Say whether this kernel, and whoever runs the tests, may do that."""
    return subprocess.run(confined([sys.executable, "-c", ""]), check=False, capture_output=True).returncode == 0


def _namespace() -> list[str]:
    return ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]


@cache
def can_start_python() -> bool:
    """Say whether a confined process can start Python itself; below somebody's home folder, say, it cannot."""
    asked = confined(["sh", "-c", f"{sys.executable} -c ''"])
    return is_possible() and subprocess.run(asked, check=False, capture_output=True).returncode == 0
