"""Charts of a machine as plain data: what was raised is drawn, and what was marked is marked."""

from datetime import timedelta

from service.page.machine.score_chart import options as score_options
from service.page.machine.timeline import summary
from service.page.machine.timeline_chart import options
from wire.enums import Grouping
from wire.rest.alarm_metrics import ActiveAlarmView
from wire.rest.scores import ScoreboardView
from wire.rest.timelines import BurstView, TimelineAlarm, TimelineView

EXAMPLE = TimelineView.model_validate(TimelineView.model_config["json_schema_extra"]["examples"][0])  # type: ignore[index]


def many(codes: int) -> TimelineView:
    """Return a timeline on which each of so many codes comes, the lower the oftener."""
    alarms = [
        TimelineAlarm(at=EXAMPLE.since + timedelta(minutes=step), code=code, text=f"Alarm {code}", severity="odd")
        for code in range(codes)
        for step in range(codes - code)
    ]
    return EXAMPLE.model_copy(update={"alarms": alarms, "count": len(alarms)})


def test_codes_beyond_the_commonest_share_a_row_and_no_alarm_is_left_out() -> None:
    found = many(20)
    drawn = options(found)
    rows = drawn["yAxis"]["data"]
    assert rows[0] == "0 Alarm 0"
    assert rows[-1] == "other alarms"
    assert len(rows) == 15
    points = [point for series in drawn["series"] for point in series["data"]]
    bursts = len(drawn["series"][3]["data"])
    assert len(points) - bursts == found.count


def test_floods_chatter_and_gaps_are_marked_with_their_words() -> None:
    burst = BurstView(code=26, text="Door open", start=EXAMPLE.since, end=EXAMPLE.since, alarms=4)
    drawn = {one["name"]: one for one in options(EXAMPLE.model_copy(update={"chatter": [burst]}))["series"]}
    assert "4 times" in drawn["chattering"]["data"][0]["tip"]
    (start, end) = drawn["flood"]["markArea"]["data"][0]
    assert "19 alarms" in start["tip"]
    assert start["xAxis"] < end["xAxis"]
    assert drawn["data gap"]["markArea"]["data"] == []


def test_a_flood_that_still_lasts_reaches_to_the_end_of_the_chart() -> None:
    flood = EXAMPLE.floods[0].model_copy(update={"end": None})
    drawn = options(EXAMPLE.model_copy(update={"floods": [flood]}))
    bands = next(one for one in drawn["series"] if one["name"] == "flood")
    assert bands["markArea"]["data"][0][1]["xAxis"] == drawn["xAxis"]["max"]


def test_an_active_alarm_is_a_bar_to_its_clear_or_to_the_end_of_the_chart() -> None:
    (cleared,) = EXAMPLE.alarms
    again = cleared.model_copy(update={"at": cleared.at + timedelta(seconds=1)})
    active = cleared.model_copy(update={"code": 8, "until": None, "active": True})
    unknown = active.model_copy(update={"active": False})
    drawn = options(EXAMPLE.model_copy(update={"alarms": [cleared, again, active, unknown]}))
    (bars,) = (one["data"] for one in drawn["series"] if one["name"] == "active")
    assert [bar["coords"][1][0] - bar["coords"][0][0] for bar in bars] == [
        97_000,
        drawn["xAxis"]["max"] - bars[1]["coords"][0][0],
    ]
    assert "06:13" in bars[0]["tip"]
    earlier = ActiveAlarmView(
        site="padova",
        machine="filler-1",
        code=5,
        text="Reel empty",
        severity="low",
        since=EXAMPLE.since - timedelta(days=2),
        until=EXAMPLE.since + timedelta(hours=1),
        seconds=49 * 3600.0,
    )
    drawn = options(EXAMPLE.model_copy(update={"earlier": [earlier]}))
    (bars,) = (one["data"] for one in drawn["series"] if one["name"] == "active")
    assert [point[0] - drawn["xAxis"]["min"] for point in bars[0]["coords"]] == [0, 3_600_000]
    assert "5 Reel empty" in drawn["yAxis"]["data"]
    assert not [one for one in options(many(2))["series"] if one["name"] == "active"]


def test_a_timeline_is_told_in_words_too() -> None:
    assert summary(EXAMPLE) == "1 alarm, 1 flood, 1 chattering period, 0 data gaps"


def test_days_without_a_figure_are_left_out_of_its_line() -> None:
    board = ScoreboardView.model_validate(ScoreboardView.model_config["json_schema_extra"]["examples"][0])  # type: ignore[index]
    line = board.rows[0].model_copy(update={"day": board.until.date()})
    model = line.metrics.model.model_copy(update={"f1": None})
    figures = line.metrics.model_copy(update={"model": model})
    silent = line.model_copy(update={"metrics": figures, "day": board.since.date()})
    drawn = score_options(board.model_copy(update={"rows": [line, silent], "by": Grouping.DAY}), "f1")
    assert len(drawn["xAxis"]["data"]) == 2
    assert [len(series["data"]) for series in drawn["series"]] == [1, 2, 2]
