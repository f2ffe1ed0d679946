"""Disks that are full or fail, at the machine and at the service."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from tests.conftest import wait_until
from tests.faults.environment import FaultEnvironment, LoadedSystem, Skipped, insist
from tests.faults.registry import Effort, fault


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    folder = Path(mkdtemp(prefix="alarmcast-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        folder.rmdir()
        raise Skipped(f"a small disk cannot be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        folder.rmdir()


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Leave not a byte on a disk, and then all of it again."""
    ballast = folder / "somebody-elses-file"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 65_536):
                pass
        except OSError:
            try:
                while file.write(b"\0" * 512):
                    pass
            except OSError:
                pass
    try:
        yield
    finally:
        ballast.unlink()


@fault("edge disk full", quick=Effort(1), full=Effort(5))
def edge_disk_full(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """The spool's disk of 2 MB fills up while the broker is away: the oldest give way, named one by one."""
    for _ in range(effort.runs):
        with small_disk(2) as disk, env.system(machines=1, rate=500, spools=disk, judged=False) as system:
            yield _overflow(system, disk)
            (machine,) = system.agents
            gaps = system.plant.api.machines.gaps(machine, limit=1000).gaps
            named = {seq - 1 for gap in gaps for seq in range(gap.first_seq, gap.last_seq + 1)}
            stored = {code for _, code in system.plant.stored(machine)}
            missing = set(range(system.load.written[machine])) - stored
            insist(missing, "the disk was too small for all")
            dropped = sum(gap.dropped for gap in gaps)
            insist(dropped == len(missing), f"gaps name what is missing: {dropped} of {len(missing)}")
            env.tally.count(system, {machine: named})


def _overflow(system: LoadedSystem, disk: Path) -> float:
    """Let a machine raise more than its disk holds, fill the disk to the last byte, and let it drain."""
    (machine,) = system.agents
    plant, load = system.plant, system.load

    def taken() -> bool:
        return plant.given(machine) >= load.written[machine]

    system.recovered()
    plant.broker.kill()
    load.stop()
    load.raise_alarms(machine, 150_000)
    wait_until(taken, "all is taken from the log", 120)
    with filled(disk):
        load.raise_alarms(machine, 2_000)
        wait_until(taken, "a full disk is no end", 60)
    plant.broker.start()
    started = time.monotonic()
    wait_until(lambda: plant.spooled(machine) == 0 and plant.gaps_spooled(machine) == 0, "all drain", 120)
    return time.monotonic() - started


@fault("central disk full, failing fsync", quick=Effort(1), full=Effort(5))
def central_disk_full(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """The service's disk is full, then its fsync fails: 503, no ack, and all is well again afterwards."""
    for _ in range(effort.runs):
        with small_disk(64) as disk, env.system(data=disk / "data") as system:
            running = system.plant.service.running
            assert running
            system.recovered()
            with filled(disk):
                _is_told_and_nothing_acked(system)
            full = system.recovered()
            with _failing_fsync(running.pid):
                _is_told_and_nothing_acked(system)
            yield max(full, system.recovered())
            wait_until(system.plant.is_ready, "the service is ready again", 60)


def _is_told_and_nothing_acked(system: LoadedSystem) -> None:
    plant = system.plant
    wait_until(lambda: not plant.api.health.ready().ready, "a disk that refuses is told", 60)
    time.sleep(1)  # long enough for acks that must not be
    for machine in system.agents:
        left = plant.left_the_spool(machine)
        insist(left <= {seq for seq, _ in plant.stored(machine)}, "what left a spool is in the database")


@contextmanager
def _failing_fsync(pid: int) -> Iterator[None]:
    strace = shutil.which("strace")
    if strace is None or sys.platform != "linux":
        raise Skipped("strace is not installed")
    calls = "fsync,fdatasync"
    command = [strace, "-f", "-qq", "-o", os.devnull, "-e", f"trace={calls}"]
    command += ["-e", f"inject={calls}:error=EIO", "-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        yield
        insist(tracer.poll() is None, "strace keeps failing the calls")
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(timeout=20)
        assert tracer.stderr
        tracer.stderr.close()
