"""Jobs that are followed: everybody is woken by a change, and they are read once for all."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from service.app.stores import Stores
from service.learning.job_store import JobStore
from service.learning.job_watch import JobWatch
from service.learning.models import Job, Progress
from service.machines.models import Machine
from tests.conftest import wait_until
from tests.service.conftest import NOW
from wire.enums import JobKind, JobState

LEASE = timedelta(minutes=1)


@dataclass(frozen=True)
class CountedJobs(JobStore):
    """The real jobs, with a note of how often they were read."""

    def several(self, numbers: Iterable[int]) -> list[Job]:
        READ["several"] += 1
        return super().several(numbers)

    def get(self, number: int) -> Job:
        READ["get"] += 1
        return super().get(number)


READ: Counter[str] = Counter()


def test_a_change_wakes_everybody_who_follows_the_job_and_is_read_once(stores: Stores, filler: Machine) -> None:
    READ.clear()
    watch = JobWatch(CountedJobs(stores.database), poll_interval_s=60)
    woken: list[int] = []
    stores.jobs.queue(stores.jobs.open(filler, JobKind.ENROL, JobState.QUEUED, at=NOW))
    followers = [watch.follow(1, lambda: woken.append(1)) for _ in range(50)]
    wait_until(lambda: len(woken) == 50, "all have the job as it is")
    before = READ["several"]
    claimed = stores.jobs.claim("me", now=NOW, lease=LEASE)
    assert claimed
    stores.jobs.renew(claimed, Progress("training", 3, 10), lease=LEASE)
    watch.changed()
    wait_until(lambda: len(woken) == 100, "all are told of the change")
    assert {one.latest.progress.stage for one in followers if one.latest} == {"training"}
    watch.changed()  # nothing has changed since
    wait_until(lambda: READ["several"] == before + 2, "it has looked twice since")
    assert len(woken) == 100
    assert READ["get"] == 0
    for one in followers:
        one.close()


def test_a_change_that_nobody_told_of_is_found_at_the_next_look_and_nobody_looks_without_followers(
    stores: Stores, filler: Machine
) -> None:
    watch = JobWatch(stores.jobs, poll_interval_s=0.05)
    follower = watch.follow(1, lambda: None)
    wait_until(lambda: follower.latest is not None, "the job is read")
    stores.enrolments.retire(filler, who="test", at=NOW, plant_at=NOW, reason=None)
    wait_until(lambda: follower.latest is not None and not follower.latest.is_open, "its end is seen")
    follower.close()
    wait_until(lambda: not watch.is_running, "it looks no more")
    again = watch.follow(1, lambda: None)
    wait_until(lambda: again.latest is not None, "it looks again")
    again.close()
