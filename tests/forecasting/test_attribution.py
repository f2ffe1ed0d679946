"""Attribution: parts that make the whole, and none for what did not change."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting.attribution import Reals, attribute
from forecasting.network import Layer, Network


def random_layers(rng: np.random.Generator, *sizes: int) -> tuple[Layer, ...]:
    return tuple(
        Layer(rng.normal(size=(out, into)).astype(np.float32), rng.normal(size=out).astype(np.float32))
        for into, out in itertools.pairwise(sizes)
    )


def said(layers: tuple[Layer, ...], rows: Reals) -> Reals:
    """Return what serves, the plain forward pass, says of the same rows."""
    return Network(layers).logits(rows.astype(np.float32)).astype(np.float64)


SEEDS = st.integers(0, 2**32 - 1).map(np.random.default_rng)
SIZES = st.lists(st.integers(1, 12), min_size=2, max_size=5)


@settings(max_examples=200, deadline=None)
@given(rng=SEEDS, sizes=SIZES, references=st.integers(1, 4))
def test_parts_sum_to_the_difference_of_what_the_network_says(
    rng: np.random.Generator, sizes: list[int], references: int
) -> None:
    layers = random_layers(rng, *sizes)
    now, usual = rng.normal(size=sizes[0]), rng.normal(size=(references, sizes[0]))
    found = attribute(layers, now, usual)
    assert found.contributions.shape == (sizes[-1], sizes[0])
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.now - found.baseline, atol=1e-9)
    np.testing.assert_allclose(found.now, said(layers, now[None])[0], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.baseline, said(layers, usual).mean(axis=0), rtol=1e-4, atol=1e-3)


@settings(max_examples=100, deadline=None)
@given(rng=SEEDS, sizes=SIZES, data=st.data())
def test_an_input_that_did_not_change_has_no_part(
    rng: np.random.Generator, sizes: list[int], data: st.DataObject
) -> None:
    now, usual = rng.normal(size=sizes[0]), rng.normal(size=(3, sizes[0]))
    same = data.draw(st.integers(0, sizes[0] - 1))
    usual[:, same] = now[same]
    assert np.array_equal(
        attribute(random_layers(rng, *sizes), now, usual).contributions[:, same], np.zeros(sizes[-1])
    )


def test_a_linear_network_gives_weight_times_difference() -> None:
    rng = np.random.default_rng(3)
    layers = random_layers(rng, 5, 3)
    now, usual = rng.normal(size=5), rng.normal(size=(4, 5))
    parts = attribute(layers, now, usual).contributions
    np.testing.assert_allclose(parts, layers[0].weight * (now - usual.mean(axis=0)), rtol=1e-12)


def test_a_relu_shares_out_what_it_lets_through_and_not_its_slope_at_either_end() -> None:
    # One unit, x - y - 1: at (0, 0) it is shut, at (3, 0) it lets 2 through, so x moved the output by 2, not 3.
    layers = (
        Layer(np.array([[1, -1]], dtype=np.float32), np.array([-1], dtype=np.float32)),
        Layer(np.array([[1]], dtype=np.float32), np.array([0], dtype=np.float32)),
    )
    here, there = np.array([3.0, 0.0]), np.array([[0.0, 0.0]])
    assert attribute(layers, here, there).contributions.tolist() == [[2.0, 0.0]]
    assert attribute(layers, there[0], here[None]).contributions.tolist() == [[-2.0, 0.0]]


def test_units_that_hardly_moved_pass_on_the_slope_of_the_relu_itself() -> None:
    rng = np.random.default_rng(5)
    layers = random_layers(rng, 4, 6, 2)
    usual = rng.normal(size=(1, 4))
    found = attribute(layers, usual[0] + 1e-13, usual)
    assert np.isfinite(found.contributions).all()
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.now - found.baseline, atol=1e-9)


def test_several_references_count_alike() -> None:
    rng = np.random.default_rng(7)
    layers = random_layers(rng, 4, 6, 2)
    now, usual = rng.normal(size=4), rng.normal(size=(3, 4))
    each = [attribute(layers, now, one[None]).contributions for one in usual]
    np.testing.assert_allclose(attribute(layers, now, usual).contributions, np.mean(each, axis=0), atol=1e-12)
