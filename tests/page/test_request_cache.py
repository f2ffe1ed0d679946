"""The request cache, views of the alarms page, and hex dumps."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from alarmcast import Unreachable
from service.page.alarms.view import View
from service.page.health.quarantine_item import hex_dump
from service.page.request_cache import RequestCache
from wire.enums import AlarmMetricsGrouping

NOW = datetime(2026, 11, 16, 8, 20, tzinfo=UTC)


def test_concurrent_requests_share_one_answer_until_it_expires() -> None:
    now, asked = [0.0], []

    async def ask() -> int:
        asked.append(now[0])
        await asyncio.sleep(0)
        return len(asked)

    async def story() -> list[int]:
        kept = RequestCache(lambda: now[0])
        together = await asyncio.gather(*(kept.get_or_fetch("key", ask, seconds=4) for _ in range(3)))
        now[0] = 3.9
        together.append(await kept.get_or_fetch("key", ask, seconds=4))
        now[0] = 4.0
        together.append(await kept.get_or_fetch("key", ask, seconds=4))
        kept.invalidate()
        return [*together, await kept.get_or_fetch("key", ask, seconds=4)]

    assert asyncio.run(story()) == [1, 1, 1, 1, 2, 3]


def test_a_failure_is_raised_and_not_cached() -> None:
    answers: Iterator[Unreachable | str] = iter([Unreachable("No answer."), "fine"])

    async def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def story() -> str:
        kept = RequestCache(lambda: 0.0)
        with pytest.raises(Unreachable):
            await kept.get_or_fetch("key", ask)
        return await kept.get_or_fetch("key", ask)

    assert asyncio.run(story()) == "fine"


@pytest.mark.parametrize(
    "view",
    [
        View(),
        View(site="padova", machine="filler-1", shift="late", span="24h", by=AlarmMetricsGrouping.SHIFT),
        View(span="custom", first=date(2026, 11, 1), last=date(2026, 11, 3), by=AlarmMetricsGrouping.DAY),
    ],
)
def test_a_view_is_restored_from_its_url(view: View) -> None:
    _, _, query = view.address.partition("?")
    assert View.of(dict(pair.split("=") for pair in query.split("&") if pair)) == view


def test_an_unreadable_url_is_the_default_view() -> None:
    odd = {"span": "forever", "by": "colour", "first": "soon", "machine": "without-a-site"}
    assert View.of(odd) == View()


def test_a_custom_range_is_whole_plant_days_and_ends_now_at_the_latest() -> None:
    asked = View(span="custom", first=date(2026, 10, 24), last=date(2026, 10, 25)).query(NOW, "Europe/Rome")
    assert asked.since == datetime(2026, 10, 23, 22, tzinfo=UTC)
    assert asked.until == datetime(2026, 10, 25, 23, tzinfo=UTC)  # 25 hours: the clocks went back
    today = View(span="custom", first=date(2026, 11, 16), last=date(2026, 11, 16)).query(NOW, "Europe/Rome")
    assert today.until == NOW


def test_hex_dump_shows_offset_hex_and_ascii() -> None:
    assert hex_dump(b"\xffab") == f"000000  {'ff 61 62':<47}  .ab"
    assert hex_dump(bytes(5000)).endswith("… and 904 more bytes")
