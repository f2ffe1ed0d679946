"""Were the forecasts right? What the API says about it, on a real store."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from alarmcast import NotFound
from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.version import StoredForecast
from service.machines.events import EventWrite, GapRow
from service.machines.models import Machine
from tests.service.conftest import EPOCH, FILLER, NOW, connect_agent, enrolled, raise_alarms
from tests.support.api_client import BASE, Client, problem
from wire.enums import Grouping, Horizon
from wire.forecasts import ForecastStatus
from wire.identity import MachineId
from wire.rest.scores import ScoreboardView, ScoresPage, ScoreSummaryView
from wire.timestamps import isoformat, to_us

HOUR, QUARTER = timedelta(hours=1), timedelta(minutes=15)
MADE = NOW.replace(minute=0) - 24 * HOUR


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


def said(stores: Stores, machine: Machine, *moments: Any, probabilities: tuple[float, float] = (0.9, 0.1)) -> None:
    row = np.array(probabilities, dtype=np.float32)
    stores.forecasts.add([StoredForecast(machine.row_id, at, 1, "ok", 3, 1.0, row) for at in moments])


@pytest.fixture
def scored(champion: object, service: Service, stores: Stores, filler: Machine) -> None:
    """Ten forecasts that announce 139 and not 26; 139 came in the first eight's horizons, 26 in all."""
    assert champion
    said(stores, filler, *(MADE + n * QUARTER for n in range(10)))
    raise_alarms(stores, filler, (MADE - 40 * HOUR, 139), (MADE + 7 * QUARTER, 139), (MADE + 5 * HOUR, 26))
    connect_agent(stores, filler)
    assert sum(service.scoring.service.score_all_due()) == 10


def total(board: ScoreboardView) -> ScoreSummaryView:
    assert board.total
    return board.total


@pytest.mark.usefixtures("scored")
def test_the_scoreboard_has_a_line_for_each_machine_and_a_total(client: Client) -> None:
    board = client.scores.scoreboard()
    (line,) = board.rows
    assert (line.site, line.machine, line.code) == ("padova", "filler-1", None)
    assert board.total == line.metrics
    figures, model = line.metrics, line.metrics.model
    assert (figures.forecasts, figures.days, figures.revision_count, figures.unobserved) == (10, 1, 0, 0)
    assert (model.pairs, model.positives, model.predicted, model.hits) == (20, 18, 10, 8)
    assert (model.precision, model.recall) == (0.8, 0.4444)
    assert model.brier == pytest.approx((8 * 0.01 + 2 * 0.81 + 10 * 0.81) / 20, abs=1e-4)
    assert [one.pairs for one in model.reliability] == [10, 10]
    assert figures.base_rate.brier_skill == 0
    assert figures.persistence.predicted == 2
    assert figures.persistence.average_precision
    assert model.average_precision
    ratio = model.average_precision / figures.persistence.average_precision
    assert figures.lift_over_persistence == pytest.approx(ratio, abs=1e-3)
    assert board.pending == 0


@pytest.mark.usefixtures("scored")
def test_lines_can_be_of_codes_versions_or_both_and_the_total_stays(client: Client) -> None:
    whole = client.scores.scoreboard().total
    by = {by: client.scores.scoreboard(by=by) for by in Grouping}
    assert all(board.total == whole for board in by.values())
    codes = {line.code: line for line in by[Grouping.CODE].rows}
    assert (codes[26].text, codes[26].metrics.model.recall) == ("Door open", 0)
    assert codes[139].metrics.model.recall == 1
    assert codes[139].metrics.forecasts == 10
    assert [line.model_version for line in by[Grouping.VERSION].rows] == ["v1"]
    assert [(line.machine, line.code) for line in by[Grouping.MACHINE_AND_CODE].rows] == [
        ("filler-1", 26),
        ("filler-1", 139),
    ]


@pytest.mark.usefixtures("scored")
def test_each_horizon_has_its_own_scores(client: Client, stores: Stores, filler: Machine) -> None:
    row, others = np.array([0.9, 0.1], dtype=np.float32), np.array([[0.75, 0.0], [1.0, 0.25]], dtype=np.float32)
    moments = [MADE - (n + 1) * QUARTER for n in range(4)]
    stores.forecasts.add([StoredForecast(filler.row_id, at, 1, "ok", 3, 1.0, row, others) for at in moments])
    near = client.scores.scoreboard(horizon=Horizon.NEAR)
    assert (near.horizon, near.pending, total(near).forecasts) == (Horizon.NEAR, 0, 4)
    assert total(near).model.positives == 0, "139 came exactly 2 h after the last of them"
    assert client.scores.scoreboard().horizon is Horizon.MAIN


@pytest.mark.usefixtures("champion")
def test_days_are_in_utc_in_order_and_the_total_stays(
    client: Client, service: Service, stores: Stores, filler: Machine
) -> None:
    midnight = MADE.replace(hour=0)
    said(stores, filler, midnight - QUARTER, midnight, midnight + QUARTER)
    raise_alarms(stores, filler, (midnight - 40 * HOUR, 139), (midnight + QUARTER, 139))
    connect_agent(stores, filler)
    other = enrolled(stores.enrolments, MachineId("padova", "other"))
    said(stores, other, midnight - QUARTER)
    raise_alarms(stores, other, (midnight - HOUR, 26), (NOW, 26))
    connect_agent(stores, other)
    assert sum(service.scoring.service.score_all_due()) == 4
    both = client.get("/v1/scoreboard", by="day").json()
    assert both["total"] == client.get("/v1/scoreboard", by="machine").json()["total"]
    one = client.get("/v1/scoreboard", by="day", site="padova", machine="filler-1").json()
    days = [[(line["day"], line["metrics"]["forecasts"]) for line in board["rows"]] for board in (both, one)]
    assert days == [[("2026-11-14", 2), ("2026-11-15", 2)], [("2026-11-14", 1), ("2026-11-15", 2)]]
    assert one["rows"][1]["machine"] is None
    assert [line["metrics"]["model"]["hits"] for line in one["rows"]] == [1, 2]
    assert one["total"]["model"]["hits"] == 3


@pytest.mark.usefixtures("scored")
def test_the_scoreboard_can_be_narrowed(client: Client, stores: Stores) -> None:
    enrolled(stores.enrolments, MachineId("lyon", "filler-2"))
    assert client.scores.scoreboard(site="lyon").total is None
    assert total(client.scores.scoreboard(site="padova", machine="filler-1")).forecasts == 10
    assert total(client.scores.scoreboard(since=MADE + QUARTER, until=MADE + 3 * QUARTER)).forecasts == 2
    assert client.scores.scoreboard(status=ForecastStatus.STALE).total is None
    assert total(client.scores.scoreboard(status=ForecastStatus.OK)).forecasts == 10


@pytest.mark.usefixtures("scored")
def test_a_forecast_says_for_each_code_whether_it_was_right(client: Client) -> None:
    page = client.scores.page(FILLER)
    assert page.next is None
    assert [one.as_of for one in page.forecasts] == [MADE + n * QUARTER for n in range(9, -1, -1)]
    newest, oldest = page.forecasts[0], page.forecasts[-1]
    assert [(alarm.code, alarm.verdict) for alarm in newest.alarms] == [(139, "false_alarm"), (26, "miss")]
    assert [(alarm.code, alarm.verdict) for alarm in oldest.alarms] == [(139, "hit"), (26, "miss")]
    assert newest.alarms[0].persistence is True
    assert (newest.model_version, newest.horizon_end) == ("v1", MADE + 9 * QUARTER + 8 * HOUR)
    only = client.scores.page(FILLER, code=26).forecasts[0].alarms
    assert [alarm.text for alarm in only] == ["Door open"]


@pytest.mark.usefixtures("champion")
def test_what_neither_was_announced_nor_came_can_be_left_out(
    client: Client, service: Service, stores: Stores, filler: Machine
) -> None:
    said(stores, filler, MADE, probabilities=(0.9, 0.1))
    connect_agent(stores, filler)
    list(service.scoring.service.score_all_due())
    (full,) = client.scores.all(FILLER)
    assert [alarm.verdict for alarm in full.alarms] == ["false_alarm", "correct_rejection"]
    assert full.alarms[0].base_rate is None
    (short,) = client.scores.all(FILLER, rejections=False)
    assert [alarm.verdict for alarm in short.alarms] == ["false_alarm"]


@pytest.mark.usefixtures("scored")
def test_scored_forecasts_come_in_pages_that_a_cursor_joins(client: Client) -> None:
    assert len(client.scores.page(FILLER, limit=4).forecasts) == 4
    moments = [one.as_of for one in client.scores.all(FILLER, limit=4)]
    assert len(moments) == 10
    assert moments == sorted(set(moments), reverse=True)


@pytest.mark.usefixtures("scored")
def test_a_forecast_whose_horizon_was_not_heard_is_neither_right_nor_wrong(
    client: Client, service: Service, stores: Stores, filler: Machine
) -> None:
    at = to_us(MADE - HOUR)
    gap = GapRow(filler.row_id, EPOCH, 1, 5, at, to_us(MADE + QUARTER), "spool_full")
    stores.events.commit(EventWrite(to_us(NOW), gaps=[gap]))
    assert sum(service.scoring.service.score_all_due()) == 10
    oldest = client.scores.page(FILLER).forecasts[-1]
    assert (oldest.unobserved, oldest.revision_count) == (True, 1)
    assert [alarm.verdict for alarm in oldest.alarms] == [None, None]
    figures = total(client.scores.scoreboard())
    assert (figures.forecasts, figures.unobserved) == (8, 2)


@pytest.mark.usefixtures("champion")
def test_a_silent_machines_closed_forecasts_are_said_to_wait(
    client: Client, stores: Stores, filler: Machine, service: Service
) -> None:
    said(stores, filler, MADE, MADE + QUARTER)
    list(service.scoring.service.score_all_due())
    board = client.scores.scoreboard()
    assert (board.pending, board.total, board.rows) == (2, None, [])


def test_without_anything_scored_the_board_is_empty(client: Client, filler: Machine) -> None:
    assert filler
    assert client.scores.scoreboard().total is None
    assert client.scores.page(FILLER) == ScoresPage(forecasts=[], next=None)


def test_unknown_machines_and_sites_are_not_found(client: Client) -> None:
    with pytest.raises(NotFound):
        client.scores.page("padova/filler-9")
    with pytest.raises(NotFound):
        client.scores.scoreboard(site="padova", machine="filler-9")
    with pytest.raises(NotFound):
        client.scores.scoreboard(site="atlantis")


@pytest.mark.parametrize(
    "query",
    [
        {"by": "colour"},
        {"machine": "filler-1"},
        {"site": "Padova"},
        {"since": "yesterday"},
        {"since": isoformat(NOW), "until": isoformat(NOW)},
        {"since": isoformat(NOW - timedelta(days=401)), "until": isoformat(NOW)},
        {"until": "2000-01-01T00:00:00Z"},
        {"status": "fine"},
    ],
)
def test_a_wrong_question_to_the_scoreboard_is_refused(shared_client: Client, query: dict[str, Any]) -> None:
    problem(shared_client.get("/v1/scoreboard", **query), 422)


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 201},
        {"cursor": "x"},
        {"cursor": "é"},
        {"cursor": "LTE"},
        {"cursor": "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"},
        {"code": -1},
    ],
)
def test_a_wrong_question_about_scores_is_refused(shared_client: Client, query: dict[str, Any]) -> None:
    problem(shared_client.get(f"{BASE}/scores", **query), 422)
