"""How far to go from the old weights to the new ones, as windows decide that nobody has learned from."""

import numpy as np
import pytest

from forecasting.network import Layer, Network
from service.learning.continual_update import best_interpolation
from service.learning.windows import Samples


def always(logit: float) -> Network:
    """Return a network that forecasts one code, and says the same whatever it sees."""
    return Network((Layer(np.zeros((1, 1), dtype=np.float32), np.array([logit], dtype=np.float32)),))


def windows(count: int, *, came: float) -> Samples:
    """Return windows of one machine, in a share of which the code came."""
    labels = (np.arange(count) < round(count * came))[:, None]
    return Samples(np.zeros((count, 1), dtype=np.float32), labels)


def said(network: Network) -> float:
    return float(network.logits(np.zeros((1, 1), dtype=np.float32))[0, 0])


def test_who_is_right_at_the_end_of_the_way_goes_all_of_it() -> None:
    assert said(best_interpolation(always(-3), always(0), [windows(100, came=0.5)])) == 0


@pytest.mark.parametrize(("came", "logit"), [(0.5, 0.0), (0.27, -1.0), (0.12, -2.0), (0.73, 1.0)])
def test_the_way_ends_near_where_forecasts_are_best(came: float, logit: float) -> None:
    assert said(best_interpolation(always(-3), always(3), [windows(1000, came=came)])) == pytest.approx(
        logit, abs=0.7
    )


def test_an_eighth_is_always_learned() -> None:
    assert said(best_interpolation(always(-3), always(3), [windows(1000, came=0.001)])) == pytest.approx(
        -3 + 6 / 8, abs=0.1
    )


def test_every_machine_is_as_weighty_however_many_windows_it_has() -> None:
    many, few = windows(10_000, came=0.95), windows(20, came=0.05)
    assert said(best_interpolation(always(-3), always(3), [many, few])) == pytest.approx(0, abs=0.7)
    assert said(best_interpolation(always(-3), always(3), [many, many, many, few])) > 0.7


def test_codes_that_the_old_weights_do_not_know_yet_are_learned() -> None:
    wider = Network((Layer(np.zeros((2, 1), dtype=np.float32), np.array([0, 2], dtype=np.float32)),))
    check = Samples(np.zeros((10, 1), dtype=np.float32), np.array([[True, True], [False, True]] * 5))
    assert best_interpolation(always(0), wider, [check]).layers[0].bias.tolist() == [0, 2]
