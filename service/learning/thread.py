"""The thread that claims jobs, runs them in a training process and commits the candidates."""

import logging
import os
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, TypeVar
from uuid import uuid4

from structlog.contextvars import bound_contextvars

from service.database.files import stale_files
from service.errors import ChampionChanged, InputRejected, LeaseLost, ServiceError, TrainingFailed, Unavailable
from service.http.message import Message, Sentence
from service.learning.candidate import Candidate
from service.learning.commit_store import UpdateStore
from service.learning.enrolment_service import wall_now
from service.learning.job_store import JobStore
from service.learning.models import Job, Progress
from service.learning.training_process import RESULT_FILE, Interrupted, WarmProcessPool
from service.messaging.background import BackgroundThread, short_switch_interval
from service.messaging.bus import ChangeBus, JobsChanged
from wire.clock import PlantClock

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)
_POLL_INTERVAL_S = 0.5
_RETRY_S = 120.0
MAX_INTERRUPTIONS = 10  # a job that kills its worker every time must end
_HUNG_AFTER_S = 900.0  # without progress, a training process is stopped
_STOPPED = Message.of("The service stopped; it goes on when that starts.")
_TRY_AGAIN = "To try again, enrol or refresh the machine once more."
Result = TypeVar("Result")


@dataclass(eq=False)
class TrainingWorker(BackgroundThread):
    """Runs one job at a time; whatever fails, the outcome of the job is stored and the thread goes on."""

    jobs: JobStore
    updates: UpdateStore
    queue_ready: Callable[[], object]
    process_pool: WarmProcessPool
    job_payload: Callable[[Job], dict[str, Any]]
    clock: PlantClock
    folder: Path
    on_done: Callable[[], None]
    wake: Event = field(default_factory=Event)  # set when there may be a job
    bus: ChangeBus = field(default_factory=ChangeBus)

    def __post_init__(self) -> None:
        super().__init__("worker")
        self.lease, self.hung_after_s = LEASE, _HUNG_AFTER_S
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"

    def sweep(self, *, older_than: float = inf) -> None:
        """Delete folders of killed jobs, last written before a time (Unix); all of them only while none runs."""
        for left in stale_files(self.folder, "job-*", older_than=older_than):
            shutil.rmtree(left, ignore_errors=True)

    def stop(self) -> None:
        """Finish the current step and stop."""
        self._stopping.set()
        self.wake.set()
        super().stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.wake.clear()
            had_job = False
            try:
                had_job = self.work()
                if not had_job:
                    self.process_pool.tick()
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded, and tried again
                self._record_error(error)
            if not had_job and not self._stopping.is_set():
                self.wake.wait(_POLL_INTERVAL_S)
        self.process_pool.close()

    def work(self) -> bool:
        """Run the next job; return whether there was one."""
        with short_switch_interval():
            self.queue_ready()
            job = self.jobs.claim(self.owner, now=wall_now(), lease=self.lease)
        if job is None:
            return False
        self.bus.publish(JobsChanged())
        with bound_contextvars(job=job.id, machine=str(job.machine)):
            try:
                self._run_job(job)
            except LeaseLost as error:
                log.warning("%s", error)
            finally:
                self.bus.publish(JobsChanged())
        return True

    def _run_job(self, job: Job) -> None:
        log.info("job %s: learning %s, attempt %s", job.id, job.machine, job.attempt)
        if job.interruptions >= MAX_INTERRUPTIONS:
            self._fail(job, Message.of(f"It was cut off {job.interruptions} times and is given up.", _TRY_AGAIN))
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with TemporaryDirectory(dir=self.folder, prefix=f"job-{job.id}-") as folder:
                if not self._train(job, Path(folder)):
                    self.jobs.release(job, why=_STOPPED)
                    return
                with short_switch_interval():
                    self._commit(job, Candidate.read(Path(folder) / RESULT_FILE))
        except LeaseLost:
            raise
        except (ChampionChanged, Unavailable) as error:
            self._try_again(job, error, interrupted=False)
        except Interrupted as error:
            self._try_again(job, error, interrupted=True)
        except ServiceError as error:
            self._fail(job, Message(_sentences(error)))
        except OSError as error:
            self._fail(job, Message.of(f"The learning could not be done: {error.strerror or error}."))
        except Exception as error:
            log.exception("job %s broke", job.id)
            detail = Sentence(f"It was {error!r}.", restricted=True)
            self._fail(job, Message.of("This is a defect of the service, and its log says more.", detail))

    def _commit(self, job: Job, candidate: Candidate) -> None:
        version = self._retry_until_available(
            lambda: self.updates.commit(job, candidate, now=wall_now(), plant_now=self.clock.now())
        )
        log.info("job %s: v%s %s", job.id, version, "serves" if candidate.passed else "was rejected")
        self.on_done()

    def _train(self, job: Job, folder: Path) -> bool:
        """Train, leaving the result in the folder; return False if the service stops meanwhile."""
        process = self.process_pool.acquire()
        process.send_job(self.job_payload(job) | {"folder": str(folder)})
        progress, renewed, last_progress = Progress("starting"), float("-inf"), time.monotonic()
        try:
            for update in process.progress(every=_POLL_INTERVAL_S):
                if self._stopping.is_set():
                    return False
                if update is not None:
                    last_progress = time.monotonic()
                elif time.monotonic() - last_progress > self.hung_after_s:
                    raise Interrupted(
                        f"The training process has said nothing for {self.hung_after_s:.0f} seconds."
                    )
                changed = update is not None and update.stage != progress.stage
                progress = update or progress
                if changed or time.monotonic() - renewed >= _POLL_INTERVAL_S:
                    self._renew(job, progress)
                    renewed = time.monotonic()
            return True
        finally:
            process.stop()
            self.process_pool.keep_warm()

    def _try_again(self, job: Job, error: ServiceError, *, interrupted: bool) -> None:
        why = Message(_sentences(error))
        if interrupted and job.interruptions + 1 >= MAX_INTERRUPTIONS:
            begin = f"It was cut off {MAX_INTERRUPTIONS} times and is given up."
            self._fail(job, Message.of(begin, *why.sentences, _TRY_AGAIN))
        else:
            log.warning("job %s goes back into the queue: %s", job.id, why)
            self._retry_until_available(lambda: self.jobs.release(job, why=why, interrupted=interrupted))

    def _fail(self, job: Job, why: Message) -> None:
        log.warning("job %s failed: %s", job.id, why)
        self._retry_until_available(lambda: self.jobs.fail(job, why, now=wall_now(), plant_now=self.clock.now()))

    def _renew(self, job: Job, progress: Progress) -> None:
        try:
            self.jobs.renew(job, progress, lease=self.lease)
            self.bus.publish(JobsChanged())
        except Unavailable as error:
            # Training needs no database; if another worker claims the job meanwhile, the commit is rejected.
            log.warning("job %s: %s", job.id, error)

    def _retry_until_available(self, write: Callable[[], Result]) -> Result:
        """Retry a write while the database is unavailable, for up to two minutes."""
        deadline = time.monotonic() + _RETRY_S
        while True:
            try:
                return write()
            except Unavailable:
                if self._stopping.is_set() or time.monotonic() > deadline:
                    raise
                self._stopping.wait(_POLL_INTERVAL_S)


def _sentences(error: ServiceError) -> tuple[Sentence, ...]:
    """Return the sentences of an error; those that may name other machines only for users of all sites."""
    if isinstance(error, TrainingFailed):
        detail = () if error.detail is None else (Sentence(error.detail, restricted=True),)
        return (Sentence(error.message), *detail)
    return (Sentence(str(error), restricted=not isinstance(error, InputRejected | ChampionChanged)),)
