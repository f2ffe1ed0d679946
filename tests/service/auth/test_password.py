"""Which passwords are taken, and that one told once is always one of them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.auth.password import (
    MAX_LENGTH,
    MIN_LENGTH,
    HashCost,
    PasswordHasher,
    generate_temporary,
    normalize,
    validate,
)
from service.errors import InputRejected

CHEAP = PasswordHasher(HashCost(rounds=1, kilobytes=64))


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("short one", "fewer than 12"),
        ("x" * (MAX_LENGTH + 1), "more than 200"),
        ("aaaaaaaaaaaaaaaa", "fewer than 5 different"),
        ("abababababababab", "fewer than 5 different"),
        ("tab\tis no character", "cannot be typed"),
        ("maria-maria-maria", "a name"),
        ("Password12345", "tried first"),
        ("alarmcast2026", "tried first"),
    ],
)
def test_a_weak_password_is_refused_with_what_to_do(password: str, why: str) -> None:
    with pytest.raises(InputRejected, match=why) as caught:
        validate(password, name="maria")
    assert str(caught.value).endswith("do.")
    assert password not in str(caught.value)


@pytest.mark.parametrize(
    "password", ["four unrelated plain words", "Zug fährt über Brücken", "電車は橋を渡って海へ行くのだ"]
)
def test_words_of_any_language_are_taken(password: str) -> None:
    assert validate(password, name="maria") == password


@given(st.integers(0, 2**32))
def test_a_password_told_once_is_long_legible_and_taken(seed: int) -> None:
    told = generate_temporary(random.Random(seed).choice)  # noqa: S311 - of a test
    assert len(told.replace("-", "")) == 20
    assert not set(told) & set("0o1il")
    assert validate(told, name="admin") == told


def test_two_ways_to_type_a_letter_are_one_password() -> None:
    assert normalize("cafe\u0301 au lait noir") == normalize("caf\u00e9 au lait noir")


@given(st.text(min_size=MIN_LENGTH, max_size=40), st.text(min_size=1, max_size=40))
def test_only_the_right_password_is_right(password: str, other: str) -> None:
    password, other = (text.encode(errors="replace").decode() for text in (password, other))
    kept = CHEAP.hash(password)
    assert kept.startswith("$argon2id$")
    assert password not in kept
    assert CHEAP.verify(kept, password)
    assert CHEAP.verify(kept, other) is (password == other)
    assert CHEAP.verify(None, password) is False


def test_a_hash_of_another_cost_is_outdated_and_still_right() -> None:
    kept = CHEAP.hash("four unrelated plain words")
    dearer = PasswordHasher(HashCost(rounds=2, kilobytes=64))
    assert dearer.verify(kept, "four unrelated plain words")
    assert dearer.is_outdated(kept)
    assert not CHEAP.is_outdated(kept)


def test_what_is_no_hash_is_no_password() -> None:
    assert CHEAP.verify("", "x") is False
    assert CHEAP.verify("$argon2id$rubbish", "x") is False
