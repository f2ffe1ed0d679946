"""Follow jobs as they change; one query serves all followers.

Jobs are read after :meth:`JobWatch.changed`, and at a regular interval for changes of other processes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from service.errors import ServiceError
from service.learning.job_store import JobStore
from service.learning.models import Job

_POLL_INTERVAL_S = 2.0
_BATCH_DELAY_S = 0.1  # changes within this time are read together


@dataclass(eq=False)
class Follower:
    """Follows one job; ``wake`` is called from any thread when ``latest`` has changed."""

    watch: "JobWatch"
    number: int
    wake: Callable[[], None]
    latest: Job | None = None

    def close(self) -> None:
        """Stop following; may be called twice."""
        self.watch.leave(self)


@dataclass
class JobWatch:
    """Reads the followed jobs, in a thread that runs while there are followers."""

    jobs: JobStore
    poll_interval_s: float = _POLL_INTERVAL_S
    _followers: set[Follower] = field(default_factory=set)
    _changed: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)
    is_running: bool = False

    def follow(self, number: int, wake: Callable[[], None]) -> Follower:
        """Start to follow a job."""
        follower = Follower(self, number, wake)
        with self._lock:
            self._followers.add(follower)
            if not self.is_running:
                self.is_running = True
                Thread(target=self._run, name="job watch", daemon=True).start()
        self._changed.set()
        return follower

    def leave(self, follower: Follower) -> None:
        """Remove a follower."""
        with self._lock:
            self._followers.discard(follower)
        self._changed.set()

    def changed(self) -> None:
        """Read the followed jobs again soon."""
        if self._followers:
            self._changed.set()

    def close(self) -> None:
        """Wake all followers, because the service stops."""
        for follower in tuple(self._followers):
            follower.wake()

    def _run(self) -> None:
        while True:
            if self._changed.wait(self.poll_interval_s):
                time.sleep(_BATCH_DELAY_S)
            self._changed.clear()
            with self._lock:
                followers = tuple(self._followers)
                if not followers:
                    self.is_running = False
                    return
            try:
                self._read(followers)
            except ServiceError:
                continue  # the database is busy or away: try again

    def _read(self, followers: tuple[Follower, ...]) -> None:
        jobs = {job.id: job for job in self.jobs.several({follower.number for follower in followers})}
        for follower in followers:
            job = jobs.get(follower.number)
            if job is not None and job != follower.latest:
                follower.latest = job
                follower.wake()
