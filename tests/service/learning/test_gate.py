"""The gate refuses forgetting and not bad luck, says why, and says when it cannot tell."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from service.learning import metrics
from service.learning.gate import (
    METRICS,
    GateThresholds,
    MachineComparison,
    PairedPredictions,
    decide,
)
from tests.support.gate import FAST, HOUR, Plant, first, new, old, precision, texts, unchanged


def test_candidate_that_answers_like_the_champion_passes_without_a_word() -> None:
    plant = Plant(0, days=60)
    verdict = decide([old("m1", unchanged(plant.pair())), new("m2", unchanged(plant.pair()))])
    assert verdict.passed
    assert verdict.reasons == verdict.undecided == ()
    assert {figure.loss for figure in verdict.figures} == {0}


def test_forgotten_machine_is_named_with_its_scores() -> None:
    plant = Plant(1, days=60)
    pair = plant.pair(kept=0.3)
    verdict = decide([old("m1", unchanged(plant.pair())), old("m2", pair)])
    assert not verdict.passed
    before, after = precision(pair.labels, pair.reference), precision(pair.labels, pair.candidate)
    told = f"m2: average precision fell from {before:.3f} (best version) to {after:.3f}, by {before - after:.3f}"
    assert texts(verdict.reasons)[0].startswith(told + " where 0.050 is allowed; at least ")
    assert texts(verdict.reasons)[1].startswith("m2: brier skill fell from ")
    assert not any(reason.startswith("m1") for reason in texts(verdict.reasons))


def test_certain_loss_within_the_allowed_one_passes() -> None:
    plant = Plant(2, days=60)
    held = unchanged(plant.pair())
    sittings = [*(old(f"m{i}", held) for i in range(20)), old("m20", plant.pair(kept=0.6))]
    assert not decide(sittings).passed
    assert decide(sittings, GateThresholds(max_forgetting=0.9)).passed


def test_each_metric_is_held_against_its_own_best_version() -> None:
    plant = Plant(3, days=60)
    pair = plant.pair(kept=0.3)
    same = replace(pair, reference=pair.candidate)
    sitting = MachineComparison(
        "m1", new=False, against_best={"average_precision": same, "brier_skill": pair}, against_champion=None
    )
    reasons = texts(decide([sitting]).reasons)
    assert len(reasons) == 1
    assert "brier skill" in reasons[0]


def test_overconfidence_that_ranks_as_well_is_refused_for_its_brier_skill() -> None:
    pair = Plant(4, days=60).pair()
    pair = replace(pair, candidate=0.5 + pair.reference / 2)
    reasons = texts(decide([old("m1", pair)]).reasons)
    assert reasons
    assert all("brier skill" in reason for reason in reasons)


def test_large_loss_that_chance_may_explain_is_told_and_not_punished() -> None:
    pair = Plant(5, days=10).pair(kept=0.7)
    verdict = decide([old("m1", pair), *(old(f"x{i}", unchanged(pair)) for i in range(13))])
    assert verdict.passed
    assert any(doubt.startswith("m1: average precision ") for doubt in texts(verdict.undecided))


# --- the fleet


def test_small_loss_everywhere_is_seen_in_the_mean_and_in_no_machine() -> None:
    plant = Plant(6, days=60)
    reasons = texts(decide([old(f"m{i}", plant.pair(kept=0.95)) for i in range(13)], FAST).reasons)
    assert reasons
    assert all(reason.startswith("All old machines together: ") for reason in reasons)
    assert all("(champion)" in reason and "0.010 is allowed" in reason for reason in reasons)


def test_mean_is_held_against_the_champion_and_not_against_lucky_bests() -> None:
    plant = Plant(7, days=60)
    lucky = [plant.pair(kept=0.95) for _ in range(13)]
    sittings = [
        replace(old(f"m{i}", pair), against_champion=replace(pair, reference=pair.candidate))
        for i, pair in enumerate(lucky)
    ]
    assert decide(sittings, FAST).passed


# --- the new machine


def test_new_machine_may_not_be_worse_than_the_champion_was_unseen() -> None:
    plant = Plant(8, days=60)
    assert decide([new("m1", plant.pair(kept=1, better=0.5))]).passed
    reasons = texts(decide([new("m1", plant.pair(kept=0.5, better=1))]).reasons)
    assert reasons
    assert all(reason.startswith("m1: ") and "(champion)" in reason for reason in reasons)


def test_best_version_of_the_machine_being_relearned_is_not_asked() -> None:
    plant = Plant(9, days=60)
    pair = plant.pair(kept=0.3)
    sitting = MachineComparison(
        "m1", new=True, against_best=dict.fromkeys(METRICS, pair), against_champion=unchanged(pair)
    )
    assert {figure.against for figure in decide([sitting]).figures} == {"champion"}


def test_rounding_is_no_loss() -> None:
    pair = Plant(10, days=20).pair()
    pair = replace(pair, candidate=pair.reference * (1 - 1e-15))
    assert decide([new("m1", pair)]).passed


def test_first_machine_must_beat_its_base_rate() -> None:
    pair = Plant(11, days=20).pair()
    pair = replace(pair, base_rate=pair.labels.mean(axis=0))
    verdict = decide([first(pair)])
    assert verdict.passed
    assert {figure.against for figure in verdict.figures} == {"base rate"}
    reversed_ranks = decide([first(replace(pair, candidate=1 - pair.candidate))])
    assert [reason.split(" is ")[0] for reason in texts(reversed_ranks.reasons)] == [
        "m1: average precision",
        "m1: brier skill",
    ]


def test_first_machine_that_only_says_the_base_rate_is_refused_for_both_scores() -> None:
    pair = Plant(12, days=20).pair()
    constant = np.broadcast_to(pair.base_rate, pair.labels.shape).copy()
    reasons = texts(decide([first(replace(pair, candidate=constant))]).reasons)
    prevalence = pair.labels.mean(axis=0)[pair.labels.any(axis=0)].mean()
    same = f"{prevalence:.3f}"
    assert reasons == (
        f"m1: average precision is {same}, not above the {same} of its base rate.",
        "m1: brier skill is 0.000, not above the 0.000 of its base rate.",
    )


# --- exams that cannot tell


@pytest.mark.parametrize("sit", [first, lambda pair: old("m1", pair), lambda pair: new("m1", pair)])
def test_exam_of_few_days_decides_nothing_and_the_verdict_says_so(
    sit: Callable[[PairedPredictions], MachineComparison],
) -> None:
    pair = Plant(13, days=6).pair(kept=0.0)
    verdict = decide([sit(pair)])
    assert verdict.passed
    assert texts(verdict.undecided) == ("m1: its exam has 6 days, and fewer than 7 cannot tell.",)


def test_exam_too_noisy_to_show_a_loss_of_a_tenth_is_called_undecided() -> None:
    plant = Plant(14, days=8)
    verdict = decide([old(f"m{i}", plant.pair()) for i in range(14)])
    assert verdict.passed
    assert any(
        "so that a loss of 0.100 since the best version could not be seen." in doubt
        for doubt in texts(verdict.undecided)
    )


def windows(
    days: int, labels: np.ndarray, candidate: float, reference: float, rate: float = 0.5
) -> PairedPredictions:
    shape = labels.shape
    return PairedPredictions(
        np.arange(shape[0], dtype=np.int64) * HOUR * 24 * days // max(shape[0], 1),
        labels,
        np.full(shape[1], rate),
        np.full(shape, candidate),
        np.full(shape, reference),
    )


def test_exam_without_an_alarm_decides_nothing() -> None:
    silent = windows(20, np.zeros((480, 3), dtype=np.bool_), 0.3, 0.1)
    for sitting in (old("m1", silent), new("m1", silent), first(silent)):
        verdict = decide([sitting])
        assert verdict.passed
        assert texts(verdict.undecided) == ("m1: no alarm came in the 20 days of its exam.",)


def test_candidate_that_announces_alarms_in_an_exam_without_one_is_refused() -> None:
    silent = windows(20, np.zeros((480, 3), dtype=np.bool_), 0.9, 0.1)
    for sitting in (old("m1", silent), new("m1", silent)):
        verdict = decide([sitting])
        assert not verdict.passed
        (reason,) = texts(verdict.reasons)
        assert reason.startswith("m1: no alarm came in the 20 days of its exam, and the squared error")
        assert "rose from 0.010" in reason
        assert "to 0.810, where 0.250 more is allowed." in reason


@pytest.mark.parametrize("shape", [(0, 3), (0, 0), (1, 3), (1, 0), (480, 0)])
def test_exam_without_windows_or_codes_decides_nothing(shape: tuple[int, int]) -> None:
    verdict = decide([old("m1", windows(20, np.ones(shape, dtype=np.bool_), 0.1, 0.9))])
    assert verdict.passed
    assert len(verdict.undecided) == 1
    json.dumps(verdict.as_json(), allow_nan=False)


def test_alarms_of_a_single_day_cannot_tell_how_much_they_vary() -> None:
    labels = np.zeros((480, 2), dtype=np.bool_)
    labels[30:40] = True
    undecided = texts(decide([old("m1", windows(20, labels, 0.2, 0.3))]).undecided)
    assert undecided == ("m1: no alarm came on two of the 20 days of its exam.",)


def test_base_rate_that_is_never_wrong_leaves_no_brier_skill_to_lose() -> None:
    always = windows(20, np.ones((480, 2), dtype=np.bool_), 0.5, 1.0, rate=1.0)
    verdict = decide([old("m1", always)])
    assert verdict.passed
    assert texts(verdict.undecided) == (
        "m1: its base rate was never wrong in 20 days: there is no skill to measure.",
    )


def test_constant_probabilities_are_judged_like_any_other() -> None:
    labels = np.tile(np.arange(24)[:, None] < 6, (20, 2))  # every day alike: nothing moves by chance
    assert decide([old("m1", windows(20, labels, 0.25, 0.25))]).passed
    reasons = texts(decide([old("m1", windows(20, labels, 0.9, 0.25))]).reasons)
    assert reasons
    assert all("brier skill" in reason for reason in reasons)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.1, 1.1])
def test_candidate_whose_answers_are_not_probabilities_never_passes(wrong: float) -> None:
    pair = Plant(15, days=20).pair()
    answers = pair.candidate.copy()
    answers[5, 1] = wrong
    for sitting in (old("m1", replace(pair, candidate=answers)), first(replace(pair, candidate=answers))):
        verdict = decide([old("m0", unchanged(pair)), sitting])
        assert not verdict.passed
        assert texts(verdict.reasons) == ("m1: the candidate answers what is not a probability.",)


def test_champion_whose_answers_are_not_numbers_is_no_measure() -> None:
    pair = Plant(16, days=20).pair()
    verdict = decide([old("m1", replace(pair, reference=np.full_like(pair.reference, np.nan)))])
    assert verdict.passed
    assert texts(verdict.undecided) == ("m1: the version to compare with answers what is not a probability.",)
    json.dumps(verdict.as_json(), allow_nan=False)


def test_undecided_machines_are_left_out_of_the_mean_and_of_the_correction() -> None:
    plant, short = Plant(17, days=60), Plant(18, days=5)
    sound = [old(f"m{i}", plant.pair()) for i in range(3)]
    alone, joined = decide(sound), decide([*sound, old("short", short.pair(kept=0.0))])
    assert [replace(figure, days=0) for figure in alone.figures if figure.machine != "short"] == [
        replace(figure, days=0) for figure in joined.figures if figure.machine != "short"
    ]


# --- what is handed over


def test_verdict_is_plain_json_with_every_machine_and_the_mean() -> None:
    plant = Plant(19, days=20)
    verdict = decide([old("m1", plant.pair()), new("m2", plant.pair())], FAST)
    plain = json.loads(json.dumps(verdict.as_json(), allow_nan=False))
    assert plain["passed"] is verdict.passed
    rows = [(row["machine"], row["metric"], row["against"]) for row in plain["figures"]]
    assert rows == [
        ("m1", "average_precision", "best version"),
        ("m1", "average_precision", "champion"),
        ("m1", "brier_skill", "best version"),
        ("m1", "brier_skill", "champion"),
        ("m2", "average_precision", "champion"),
        ("m2", "brier_skill", "champion"),
        (None, "average_precision", "champion"),
        (None, "brier_skill", "champion"),
    ]
    assert all(row["bound"] < row["loss"] and row["days"] == 20 for row in plain["figures"])


def test_figures_are_the_plain_scores_of_the_metrics() -> None:
    pair = Plant(20, days=20).pair()
    precise, skilled = (figure for figure in decide([new("m1", pair)], FAST).figures)
    assert precise.candidate == pytest.approx(precision(pair.labels, pair.candidate))
    assert precise.reference == pytest.approx(precision(pair.labels, pair.reference))
    assert skilled.candidate == pytest.approx(metrics.brier_skill(pair.labels, pair.candidate, pair.base_rate))


def test_the_same_exams_give_the_same_verdict_in_any_order() -> None:
    plant = Plant(21, days=20)
    sittings = [old(f"m{i}", plant.pair()) for i in range(3)]
    once, again = decide(sittings[:2], FAST), decide(sittings[1::-1], FAST)
    assert decide(sittings, FAST) == decide(sittings, FAST)
    assert {(f.machine, f.metric, round(f.bound, 12)) for f in once.figures} == {
        (f.machine, f.metric, round(f.bound, 12)) for f in again.figures
    }


def test_questions_that_make_no_sense_are_refused() -> None:
    pair = Plant(22, days=7).pair()
    with pytest.raises(ValueError, match="holdout set of every machine"):
        decide([])
    with pytest.raises(ValueError, match="holdout set of every machine"):
        decide([MachineComparison("m1", new=False, against_best={}, against_champion=None)])
    with pytest.raises(ValueError, match="first machine needs its holdout set"):
        MachineComparison("m1", new=True, against_best={}, against_champion=None)
    with pytest.raises(ValueError, match="f1"):
        MachineComparison("m1", new=False, against_best={"f1": pair}, against_champion=None)
    with pytest.raises(ValueError, match="every window and every code"):
        replace(pair, candidate=pair.candidate[:, 1:])
    with pytest.raises(ValueError, match="a moment for each window"):
        replace(pair, at=pair.at[1:])
    with pytest.raises(ValueError, match="resamples"):
        GateThresholds(resamples=1)


# --- error rates: the reason for all of the above
