"""Start, watch and stop the process that trains.

It writes lines of JSON: progress, and last either ``done`` or the reason why it failed. It ends when its standard
input is closed, so it never outlives the service.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Any

from service.errors import TrainingFailed
from service.learning.models import Progress

RESULT_FILE = "candidate.parcel"
_INTERRUPTED = "The training process was killed (signal {signal})."


class Interrupted(TrainingFailed):
    """The process died without a word; it may succeed next time."""


@dataclass
class TrainingProcess:
    """One child process for one job; what it compiles is kept in ``compiled`` for those that come after it."""

    command: list[str]
    compiled: Path
    process: subprocess.Popen[str] | None = None
    _complaints: IO[str] | None = None

    def start(self) -> None:
        """Start the process, which gets ready to learn and then waits for its orders."""
        # One thread: a second one gains little alone, and takes what forecasts need.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment |= {"NUMBA_CACHE_DIR": str(self.compiled)}
        self._complaints = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - until it ends
        self.process = subprocess.Popen(  # noqa: S603 - our own module
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=environment,
        )

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.process is not None and self.process.poll() is None

    def send_job(self, orders: dict[str, Any]) -> None:
        """Say what to learn, over its standard input, where nobody else can read it."""
        if self.process is None or self.process.stdin is None:
            raise RuntimeError("start first")
        with suppress(BrokenPipeError):  # one that has died says why to whoever asks for its progress
            self.process.stdin.write(json.dumps(orders) + "\n")
            self.process.stdin.flush()

    def progress(self, *, every: float) -> Iterator[Progress | None]:
        """Yield how far it is, or None when there was nothing new for ``every`` seconds, until it is done."""
        if self.process is None or self.process.stdout is None:
            raise RuntimeError("start first")
        lines: Queue[str | None] = Queue()
        Thread(target=_pump, args=(self.process.stdout, lines), name="apprentice", daemon=True).start()
        failure: TrainingFailed | None = None
        done = False
        while True:
            try:
                line = lines.get(timeout=every)
            except Empty:
                yield None
                continue
            if line is None:
                break
            said = json.loads(line)
            done = done or "done" in said
            if "failed" in said:
                failure = TrainingFailed(said["failed"], detail=said.get("detail"))
            if "stage" in said:
                yield Progress(**said)
        self._insist(done=done, failure=failure)

    def stop(self) -> None:
        """End the process if it still runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout, self._complaints):
                if pipe:
                    with suppress(BrokenPipeError):  # orders that nobody has read
                        pipe.close()

    def _insist(self, *, done: bool, failure: TrainingFailed | None) -> None:
        code = self.process.wait() if self.process else -1
        if failure is not None:
            raise failure
        if code < 0:
            raise Interrupted(_INTERRUPTED.format(signal=-code))
        if code != 0 or not done:
            raise TrainingFailed(
                f"The training process ended with code {code}.", detail=f"Its last words: {self._last_complaint()}"
            )

    def _last_complaint(self) -> str:
        if self._complaints is None:
            return "it was never started"
        self._complaints.seek(0)
        return (self._complaints.read().strip().splitlines() or ["it said nothing"])[-1]


def _pump(stream: IO[str], lines: "Queue[str | None]") -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


_IDLE_TIMEOUT_S = 600.0  # seconds; machines are often enrolled one after the other, and refreshed so


class WarmProcessPool:
    """Keeps one apprentice waiting while another job is likely, which is for some minutes after one.

    Never beside one that learns, so that learning needs no more memory than it does alone.
    """

    def __init__(self, make: Callable[[], TrainingProcess], *, patience: float = _IDLE_TIMEOUT_S) -> None:
        self._make, self._patience = make, patience
        self._waiting: TrainingProcess | None = None
        self._until = float("-inf")

    def acquire(self) -> TrainingProcess:
        """Return the one that waits, or else a new one."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.is_alive:
            return waiting
        if waiting is not None:
            waiting.stop()
        return self._started()

    def keep_warm(self) -> None:
        """Look forward to another job."""
        self._until = time.monotonic() + self._patience

    def tick(self) -> None:
        """Have one waiting while another job is likely, and none any more when nobody came."""
        likely = time.monotonic() < self._until
        if likely and self._waiting is None:
            self._waiting = self._started()
        elif not likely or (self._waiting is not None and not self._waiting.is_alive):
            self.close()

    def close(self) -> None:
        """Let the one that waits go, and have no other."""
        self._until = float("-inf")  # one that died while it waited would die again
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None

    def _started(self) -> TrainingProcess:
        apprentice = self._make()
        apprentice.start()
        return apprentice
