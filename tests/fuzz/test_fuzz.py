"""Four thousand cases of bad input on every run; scripts/fuzz runs as many as there is time for."""

import pytest

from tests.fuzz.campaign import TARGETS, Target

CASES = 4_000


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_input_breaks_a_promise(target: Target) -> None:
    target.play(7, round(CASES * target.share))
