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

RESULT_FILE = "candidate.bin"
_INTERRUPTED = "The training process was killed (signal {signal})."


class Interrupted(TrainingFailed):
    """The process was killed; it may succeed next time."""


@dataclass
class TrainingProcess:
    """A child process for one job; compiled code is cached in the folder ``compiled``."""

    command: list[str]
    compiled: Path
    process: subprocess.Popen[str] | None = None
    _stderr: IO[str] | None = None

    def start(self) -> None:
        """Start the process, which warms up and then waits for its job."""
        # One thread: a second one gains little and takes CPU from forecasts.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment |= {"NUMBA_CACHE_DIR": str(self.compiled)}
        self._stderr = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - until it ends
        self.process = subprocess.Popen(  # noqa: S603 - our own module
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=environment,
        )

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send_job(self, payload: dict[str, Any]) -> None:
        """Send the job over standard input, which no other process can read."""
        if self.process is None or self.process.stdin is None:
            raise RuntimeError("start first")
        with suppress(BrokenPipeError):  # why it died is raised by ``progress``
            self.process.stdin.write(json.dumps(payload) + "\n")
            self.process.stdin.flush()

    def progress(self, *, every: float) -> Iterator[Progress | None]:
        """Yield the progress, or None after ``every`` seconds without any, until the process ends."""
        if self.process is None or self.process.stdout is None:
            raise RuntimeError("start first")
        lines: Queue[str | None] = Queue()
        Thread(target=_pump, args=(self.process.stdout, lines), name="training output", daemon=True).start()
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
            message = json.loads(line)
            done = done or "done" in message
            if "failed" in message:
                failure = TrainingFailed(message["failed"], detail=message.get("detail"))
            if "stage" in message:
                yield Progress(**message)
        self._check_exit(done=done, failure=failure)

    def stop(self) -> None:
        """End the process if it still runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout, self._stderr):
                if pipe:
                    with suppress(BrokenPipeError):  # a job that was never read
                        pipe.close()

    def _check_exit(self, *, done: bool, failure: TrainingFailed | None) -> None:
        code = self.process.wait() if self.process else -1
        if failure is not None:
            raise failure
        if code < 0:
            raise Interrupted(_INTERRUPTED.format(signal=-code))
        if code != 0 or not done:
            raise TrainingFailed(
                f"The training process ended with code {code}.", detail=f"Its last words: {self._last_error()}"
            )

    def _last_error(self) -> str:
        if self._stderr is None:
            return "it was never started"
        self._stderr.seek(0)
        return (self._stderr.read().strip().splitlines() or ["it said nothing"])[-1]


def _pump(stream: IO[str], lines: "Queue[str | None]") -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


_IDLE_TIMEOUT_S = 600.0  # machines are often enrolled and refreshed one after the other


class WarmProcessPool:
    """Keeps one started process for some minutes after a job, because loading torch takes seconds.

    It never waits beside one that trains, so that no more memory is needed.
    """

    def __init__(self, make: Callable[[], TrainingProcess], *, idle_timeout_s: float = _IDLE_TIMEOUT_S) -> None:
        self._make, self._idle_timeout_s = make, idle_timeout_s
        self._waiting: TrainingProcess | None = None
        self._until = float("-inf")

    def acquire(self) -> TrainingProcess:
        """Return the waiting process, or a new one."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.is_alive:
            return waiting
        if waiting is not None:
            waiting.stop()
        return self._started()

    def keep_warm(self) -> None:
        """Expect another job soon."""
        self._until = time.monotonic() + self._idle_timeout_s

    def tick(self) -> None:
        """Start a process while another job is expected, and stop it when the time is over."""
        likely = time.monotonic() < self._until
        if likely and self._waiting is None:
            self._waiting = self._started()
        elif not likely or (self._waiting is not None and not self._waiting.is_alive):
            self.close()

    def close(self) -> None:
        """Stop the waiting process."""
        self._until = float("-inf")  # one that died while it waited would die again
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None

    def _started(self) -> TrainingProcess:
        process = self._make()
        process.start()
        return process
