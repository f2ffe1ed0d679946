"""A campaign: so many cases for each target, each reproducible from its seed and its number."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from hypothesis import HealthCheck, Phase, given
from hypothesis import seed as hypothesis_seed
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from service.ingest.service import IncomingMessage
from tests.fuzz import tail, texts
from tests.fuzz.ingest import Ingest
from tests.fuzz.messages import imagined, message

ROUND = 10_000  # cases on one store, so that it stays small
_HANDFUL = 20


class Broken(AssertionError):
    """A case that broke a promise; the message says how to see it again."""


@dataclass(frozen=True)
class Target:
    """What is fuzzed, its share of all cases, and what plays so many of them from a seed."""

    name: str
    share: float
    play: Callable[[int, int], None]


def decoder(seed: int, cases: int) -> None:
    """Messages from the seeded dice, committed a handful at a time."""
    for first in range(0, cases, ROUND):
        with _folder() as folder, Ingest(folder) as ingest:
            last = min(first + ROUND, cases)
            for number in range(first, last, _HANDFUL):
                dice = Random(f"{seed}/{number}")  # noqa: S311 - reproducible
                messages = [message(dice) for _ in range(min(_HANDFUL, last - number))]
                with _told("decoder", seed, number, messages):
                    ingest.take(messages)


def imagination(seed: int, cases: int) -> None:
    """Messages that Hypothesis thinks of; what fails is shrunk."""
    with _folder() as folder, Ingest(folder) as ingest:

        @hypothesis_seed(seed)
        @hypothesis_settings(
            max_examples=max(1, cases // 4),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        @given(st.lists(imagined, min_size=4, max_size=4))
        def every_message_has_its_fate(messages: list[IncomingMessage]) -> None:
            ingest.take(messages)

        every_message_has_its_fate()


def _each(name: str, case: Callable[[Random, Path], None]) -> Callable[[int, int], None]:
    def play(seed: int, cases: int) -> None:
        with _folder() as folder:
            for number in range(cases):
                with _told(name, seed, number, "this case"):
                    case(Random(f"{seed}/{number}"), folder / "file")  # noqa: S311 - reproducible

    return play


TARGETS = (
    Target("decoder", 0.70, decoder),
    Target("imagination", 0.05, imagination),
    Target("rows", 0.10, _each("rows", lambda dice, _file: texts.row(dice))),
    Target("catalogue", 0.07, _each("catalogue", lambda dice, _file: texts.catalogue(dice))),
    Target("cursors", 0.05, _each("cursors", lambda dice, _file: texts.cursor(dice))),
    Target("history", 0.02, _each("history", texts.history)),
    Target("tail", 0.01, _each("tail", tail.followed)),
)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(mkdtemp(prefix="alarmcast-fuzz-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _told(name: str, seed: int, number: int, what: object) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        again = f"scripts/fuzz --only {name} --seed {seed} --cases {number + _HANDFUL}"
        raise Broken(f"{type(error).__name__}: {error}\nsee it again with: {again}\n{str(what)[:4000]}") from error
