"""The request cache of pages, and views in addresses."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from alarmcast import Unreachable
from service.page.alarms.view import View
from service.page.health.item import hexed
from service.page.request_cache import RequestCache
from wire.enums import AlarmMetricsGrouping

NOW = datetime(2026, 11, 16, 8, 20, tzinfo=UTC)


def test_who_asks_while_an_answer_is_on_its_way_gets_the_same_one_and_later_ones_a_new_one() -> None:
    now, asked = [0.0], []

    async def ask() -> int:
        asked.append(now[0])
        await asyncio.sleep(0)
        return len(asked)

    async def story() -> list[int]:
        cache = RequestCache(lambda: now[0])
        together = await asyncio.gather(*(cache.get_or_fetch("key", ask, seconds=4) for _ in range(3)))
        now[0] = 3.9
        together.append(await cache.get_or_fetch("key", ask, seconds=4))
        now[0] = 4.0
        together.append(await cache.get_or_fetch("key", ask, seconds=4))
        cache.invalidate()
        return [*together, await cache.get_or_fetch("key", ask, seconds=4)]

    assert asyncio.run(story()) == [1, 1, 1, 1, 2, 3]


def test_a_failure_is_told_and_not_kept() -> None:
    answers: Iterator[Unreachable | str] = iter([Unreachable("Nobody answers."), "fine"])

    async def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def story() -> str:
        cache = RequestCache(lambda: 0.0)
        with pytest.raises(Unreachable):
            await cache.get_or_fetch("key", ask)
        return await cache.get_or_fetch("key", ask)

    assert asyncio.run(story()) == "fine"


@pytest.mark.parametrize(
    "view",
    [
        View(),
        View(site="padova", machine="filler-1", shift="late", span="24h", by=AlarmMetricsGrouping.SHIFT),
        View(span="own", first=date(2026, 11, 1), last=date(2026, 11, 3), by=AlarmMetricsGrouping.DAY),
    ],
)
def test_a_view_is_what_its_address_says(view: View) -> None:
    _, _, query = view.address.partition("?")
    assert View.of(dict(pair.split("=") for pair in query.split("&") if pair)) == view


def test_an_address_that_cannot_be_read_is_the_usual_view() -> None:
    odd = {"span": "forever", "by": "colour", "first": "soon", "machine": "without-a-site"}
    assert View.of(odd) == View()


def test_own_days_are_whole_days_of_the_plant_and_end_now_at_the_latest() -> None:
    asked = View(span="own", first=date(2026, 10, 24), last=date(2026, 10, 25)).question(NOW, "Europe/Rome")
    assert asked.since == datetime(2026, 10, 23, 22, tzinfo=UTC)
    assert asked.until == datetime(2026, 10, 25, 23, tzinfo=UTC)  # the day on which clocks went back has 25 hours
    today = View(span="own", first=date(2026, 11, 16), last=date(2026, 11, 16)).question(NOW, "Europe/Rome")
    assert today.until == NOW


def test_bytes_are_read_as_place_hex_and_signs() -> None:
    assert hexed(b"\xffab") == f"000000  {'ff 61 62':<47}  .ab"
    assert hexed(bytes(5000)).endswith("… and 904 bytes more")
