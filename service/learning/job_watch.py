"""Jobs as they change, for those who follow them: read once for all, however many there are.

Jobs are read after ``JobsChanged`` on the change bus, and at a regular interval for changes without an event.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from service.errors import ServiceError
from service.learning.job import Job
from service.learning.job_store import JobStore
from service.messaging.bus import ChangeBus, JobsChanged, StreamsClosed

_EVERY = 2.0  # seconds between two looks while nobody says that something has changed
_GATHER = 0.1  # seconds in which changes are read together


@dataclass(eq=False)
class Follower:
    """Somebody who follows a job; ``wake`` is called, from any thread, when ``latest`` is another than before."""

    watch: "JobWatch"
    number: int
    wake: Callable[[], None]
    latest: Job | None = None

    def close(self) -> None:
        """Follow no more; harmless if it is closed."""
        self.watch.leave(self)


@dataclass
class JobWatch:
    """Looks at the jobs that somebody follows, in a thread that lives as long as there is one."""

    jobs: JobStore
    bus: ChangeBus = field(default_factory=ChangeBus)
    every: float = _EVERY
    _followers: set[Follower] = field(default_factory=set)
    _changed: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)
    is_looking: bool = False

    def __post_init__(self) -> None:
        self.bus.subscribe(JobsChanged, lambda _event: self.changed())
        self.bus.subscribe(StreamsClosed, lambda _event: self.close())

    def follow(self, number: int, wake: Callable[[], None]) -> Follower:
        """Return a place from which to follow a job."""
        made = Follower(self, number, wake)
        with self._lock:
            self._followers.add(made)
            if not self.is_looking:
                self.is_looking = True
                Thread(target=self._run, name="job watch", daemon=True).start()
        self._changed.set()
        return made

    def leave(self, follower: Follower) -> None:
        """Let a follower go."""
        with self._lock:
            self._followers.discard(follower)
        self._changed.set()

    def changed(self) -> None:
        """Say that a job may have changed; costs nothing while nobody follows one."""
        if self._followers:
            self._changed.set()

    def close(self) -> None:
        """Wake everybody, because the service stops."""
        for follower in tuple(self._followers):
            follower.wake()

    def _run(self) -> None:
        while True:
            if self._changed.wait(self.every):
                time.sleep(_GATHER)
            self._changed.clear()
            with self._lock:
                followers = tuple(self._followers)
                if not followers:
                    self.is_looking = False
                    return
            try:
                self._look(followers)
            except ServiceError:
                continue  # the database is busy or away: the next look finds it

    def _look(self, followers: tuple[Follower, ...]) -> None:
        found = {job.id: job for job in self.jobs.several({one.number for one in followers})}
        for follower in followers:
            job = found.get(follower.number)
            if job is not None and job != follower.latest:
                follower.latest = job
                follower.wake()
