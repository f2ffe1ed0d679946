"""The thread that takes up jobs, has them learned by a process of their own, and commits what that brings."""

import logging
import os
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from structlog.contextvars import bound_contextvars

from service.database.files import stale_files
from service.errors import ChampionChanged, InputRejected, LeaseLost, ServiceError, TrainingFailed, Unavailable
from service.http.message import Message, Sentence
from service.learning.candidate_store import CandidateRows
from service.learning.job import Job, Progress
from service.learning.process_pool import WarmProcessPool
from service.learning.training_process import RESULT_FILE, Interrupted
from service.messaging.background import BackgroundThread, short_switch_interval
from service.messaging.bus import ChangeBus, JobsChanged

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)
_POLL_INTERVAL_S = 0.5  # seconds between two looks for work, and between two signs of life
_RETRY_S = 120.0
MAX_INTERRUPTIONS = 10  # what kills its worker every time must not do so for ever
_HUNG_AFTER_S = 900.0  # seconds without a word after which a process that trains is given up
_STOPPED = Message.of("The service stopped; it goes on when that starts.")
_TRY_AGAIN = "To try again, enrol or refresh the machine once more."
Result = TypeVar("Result")


class JobQueue(Protocol):
    """Where jobs are taken from and given back to."""

    def claim(self, owner: str, *, now: datetime, lease: timedelta) -> Job | None:
        """Take up the next job."""
        ...

    def renew(self, job: Job, progress: Progress, *, lease: timedelta) -> None:
        """Hold a job for longer."""
        ...

    def release(self, job: Job, *, why: Message, cut_off: bool = False) -> None:
        """Give a job back."""
        ...

    def fail(self, job: Job, message: Message, *, now: datetime, plant_now: datetime) -> None:
        """End a job without a result."""
        ...


class Updates(Protocol):
    """Where a candidate becomes a version."""

    def commit(self, job: Job, parcel: CandidateRows, *, now: datetime, plant_now: datetime) -> int:
        """Write everything in one transaction."""
        ...


@dataclass(eq=False)
class TrainingWorker(BackgroundThread):
    """Works at one job at a time; whatever breaks, the job's outcome is written down and the thread goes on."""

    jobs: JobQueue
    updates: Updates
    queue_ready: Callable[[], object]
    standby: WarmProcessPool
    job_payload: Callable[[Job], dict[str, Any]]
    take_over: Callable[[Path], CandidateRows]
    wall: Callable[[], datetime]
    plant: Callable[[], datetime]
    folder: Path
    on_done: Callable[[], None]
    wake: Event = field(default_factory=Event)  # set when there may be a job; else it looks now and then
    bus: ChangeBus = field(default_factory=ChangeBus)
    lease: timedelta = LEASE
    hung: float = _HUNG_AFTER_S
    owner: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        super().__init__("worker")

    def sweep(self, *, older_than: float = inf) -> None:
        """Delete what learnings left that were cut off by a kill, last written before a moment (Unix time).

        All of it only while no other worker shares the folder.
        """
        for left in stale_files(self.folder, "job-*", older_than=older_than):
            shutil.rmtree(left, ignore_errors=True)

    def stop(self) -> None:
        """Finish what is at hand and end."""
        self._stopping.set()
        self.wake.set()
        super().stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.wake.clear()
            worked = False
            try:
                worked = self.work()
                if not worked:
                    self.standby.tick()
                self.complaint = None
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)
            if not worked and not self._stopping.is_set():
                self.wake.wait(_POLL_INTERVAL_S)
        self.standby.close()

    def work(self) -> bool:
        """Do what is to be done now; say whether there was a job."""
        with short_switch_interval():
            self.queue_ready()
            job = self.jobs.claim(self.owner, now=self.wall(), lease=self.lease)
        if job is None:
            return False
        self.bus.publish(JobsChanged())
        with bound_contextvars(job=job.id, machine=str(job.machine)):
            try:
                self._work_at(job)
            except LeaseLost as error:
                log.warning("%s", error)
            finally:
                self.bus.publish(JobsChanged())
        return True

    def _work_at(self, job: Job) -> None:
        log.info("job %s: learning %s, attempt %s", job.id, job.machine, job.attempt)
        if job.interruptions >= MAX_INTERRUPTIONS:
            self._fail(job, Message.of(f"It was cut off {job.interruptions} times and is given up.", _TRY_AGAIN))
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with TemporaryDirectory(dir=self.folder, prefix=f"job-{job.id}-") as folder:
                if not self._learn(job, Path(folder)):
                    self.jobs.release(job, why=_STOPPED)
                    return
                with short_switch_interval():
                    self._commit(job, self.take_over(Path(folder) / RESULT_FILE))
        except LeaseLost:
            raise
        except (ChampionChanged, Unavailable) as error:
            self._try_again(job, error, cut_off=False)
        except Interrupted as error:
            self._try_again(job, error, cut_off=True)
        except ServiceError as error:
            self._fail(job, Message(_sentences(error)))
        except OSError as error:
            self._fail(job, Message.of(f"The learning could not be done: {error.strerror or error}."))
        except Exception as error:
            log.exception("job %s broke", job.id)
            detail = Sentence(f"It was {error!r}.", restricted=True)
            self._fail(job, Message.of("This is a defect of the service, and its log says more.", detail))

    def _commit(self, job: Job, parcel: CandidateRows) -> None:
        version = self._retry_until_available(
            lambda: self.updates.commit(job, parcel, now=self.wall(), plant_now=self.plant())
        )
        log.info("job %s: v%s %s", job.id, version, "serves" if parcel.passed else "was rejected")
        self.on_done()

    def _learn(self, job: Job, folder: Path) -> bool:
        """Have a job learned, its result left in the folder; False if the service stops meanwhile."""
        apprentice = self.standby.acquire()
        apprentice.send_job(self.job_payload(job) | {"folder": str(folder)})
        progress, told, heard = Progress("starting"), float("-inf"), time.monotonic()
        try:
            for news in apprentice.progress(every=_POLL_INTERVAL_S):
                if self._stopping.is_set():
                    return False
                if news is not None:
                    heard = time.monotonic()
                elif time.monotonic() - heard > self.hung:
                    raise Interrupted(f"The training process has said nothing for {self.hung:.0f} seconds.")
                changed = news is not None and news.stage != progress.stage
                progress = news or progress
                if changed or time.monotonic() - told >= _POLL_INTERVAL_S:
                    self._renew(job, progress)
                    told = time.monotonic()
            return True
        finally:
            apprentice.stop()
            self.standby.keep_warm()

    def _try_again(self, job: Job, error: ServiceError, *, cut_off: bool) -> None:
        why = Message(_sentences(error))
        if cut_off and job.interruptions + 1 >= MAX_INTERRUPTIONS:
            begin = f"It was cut off {MAX_INTERRUPTIONS} times and is given up."
            self._fail(job, Message.of(begin, *why.sentences, _TRY_AGAIN))
        else:
            log.warning("job %s goes back into the queue: %s", job.id, why)
            self._retry_until_available(lambda: self.jobs.release(job, why=why, cut_off=cut_off))

    def _fail(self, job: Job, why: Message) -> None:
        log.warning("job %s failed: %s", job.id, why)
        self._retry_until_available(lambda: self.jobs.fail(job, why, now=self.wall(), plant_now=self.plant()))

    def _renew(self, job: Job, progress: Progress) -> None:
        try:
            self.jobs.renew(job, progress, lease=self.lease)
            self.bus.publish(JobsChanged())
        except Unavailable as error:
            # Training needs no database; if another worker takes the job meanwhile, the commit will be refused.
            log.warning("job %s: %s", job.id, error)

    def _retry_until_available(self, write: Callable[[], Result]) -> Result:
        """Write as soon as the database lets us; what was learned is worth waiting for."""
        until = time.monotonic() + _RETRY_S
        while True:
            try:
                return write()
            except Unavailable:
                if self._stopping.is_set() or time.monotonic() > until:
                    raise
                self._stopping.wait(_POLL_INTERVAL_S)


def _sentences(error: ServiceError) -> tuple[Sentence, ...]:
    """Return what an error says. Of what is not known to name no other machine, only people of all sites read."""
    if isinstance(error, TrainingFailed):
        detail = () if error.detail is None else (Sentence(error.detail, restricted=True),)
        return (Sentence(error.message), *detail)
    return (Sentence(str(error), restricted=not isinstance(error, InputRejected | ChampionChanged)),)
