"""Roles cover each other in order, sites contain each other, tokens can be told apart, reports keep secrets."""

import json
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.discretion import discreet, discreet_text, is_foreign
from service.core.principal import Asking, Principal, Sites, asks, insist_on, sees, sites_asked, within
from service.core.secret import KEY, SESSION, digest, matches, new_token, read_token
from service.errors import Forbidden
from tests.service.conftest import NOW
from wire.words import PrincipalKind, Role

SITES = st.sampled_from(["padova", "lyon", "graz"])
SOME = st.one_of(st.none(), st.frozensets(SITES, min_size=1))


def somebody(sites: Sites, role: Role = Role.VIEWER) -> Principal:
    return Principal("maria", role, sites, PrincipalKind.SESSION)


def test_a_role_covers_itself_and_those_below() -> None:
    order = [Role.VIEWER, Role.OPERATOR, Role.ADMIN]
    for (mine, role), (needed, least) in product(enumerate(order), repeat=2):
        assert role.covers(least) is (mine >= needed)


@given(SOME, SOME)
def test_what_is_within_ones_sites_is_what_one_sees_all_of(wanted: Sites, own: Sites) -> None:
    if wanted is None:
        assert within(wanted, own) is (own is None)
    else:
        assert within(wanted, own) is all(somebody(own).sees(site) for site in wanted)


def test_where_nobody_asks_nothing_is_to_be_seen() -> None:
    assert sites_asked() == frozenset()
    assert not sees("padova")
    with pytest.raises(Forbidden):
        insist_on("padova")
    with asks(Asking(None, "192.0.2.7", NOW)):
        assert not sees("padova")


def test_who_asks_sees_their_sites_and_is_told_which_they_are() -> None:
    with asks(Asking(somebody(frozenset({"padova", "graz"})), None, NOW)):
        insist_on("padova")
        with pytest.raises(Forbidden, match="lyon is not yours, and you act for graz, padova only"):
            insist_on("lyon")
        with pytest.raises(Forbidden, match="every site"):
            insist_on(None)
    with asks(Asking(somebody(None), None, NOW)):
        insist_on("lyon")
        insist_on(None)
    assert sites_asked() == frozenset()


@given(st.integers(0, 2**32), st.sampled_from([KEY, SESSION]))
def test_a_token_is_read_as_it_was_made_and_only_its_digest_need_be_kept(seed: int, kind: str) -> None:
    token = new_token(kind, Random(seed).randbytes)  # noqa: S311 - of a test
    assert read_token(str(token)) == token
    assert len(bytes.fromhex(token.secret)) == 32
    kept = digest(token.secret)
    assert token.secret not in kept
    assert matches(token.secret, kept)
    assert not matches(token.secret[:-1], kept)


@given(st.text(max_size=300))
def test_what_is_no_token_is_none(text: str) -> None:
    token = read_token(text)
    assert token is None or str(token) == text


MACHINES = ["padova/filler-1", "lyon/capper", "graz/filler-1"]


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.integers(),
            st.sampled_from(MACHINES),
            st.sampled_from(MACHINES).map("It lost {}.".format),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.sampled_from([*MACHINES, "n"]), inner, max_size=4)
        ),
        max_leaves=20,
    ),
    st.frozensets(SITES),
)
def test_a_report_names_no_machine_of_other_sites(report: Any, sites: frozenset[str]) -> None:
    told = json.dumps(discreet(report, sites))
    assert not [name for name in MACHINES if is_foreign(name, sites) and name in told]
    assert discreet(report, None) == report


def test_a_site_without_a_letter_is_hidden_where_a_machine_is_named() -> None:
    sentences = [
        "4711/17: average precision fell from 0.500 (champion) to 0.400, by 0.100 (3/4 of it in 2/3 of the exam).",
        "padova/a: brier skill is 0.1, not above the 0.2 of its base rate.",
        "4711/18: 3/4 of its windows have no alarm.",
    ]
    own = frozenset({"padova"})
    report = {
        "verdict": {
            "reasons": sentences,
            "figures": [{"machine": "4711/17", "loss": 0.1}, {"machine": "padova/a"}],
        },
        "by_machine": {"4711/17": 1, "padova/a": 2},
        "learned": ["4711/17", "padova/a"],
    }
    told = json.dumps(discreet(report, own))
    assert "4711" not in told
    assert "3/4 of it in 2/3 of the exam" in told
    assert "padova/a: brier skill" in told
    message = discreet_text(" ".join(sentences), own)
    assert "4711" not in message
    assert message.count("another site's machine: ") == 2
    assert discreet_text("4711/17 has 3 windows to learn from and needs 336.", own).startswith("another site's")
    assert discreet_text(message, None) == message


def test_a_sentence_keeps_its_own_machines_and_its_fractions() -> None:
    text = "padova/filler-1 lost 0.08, lyon/capper 3/4 of it (lyon/capper-2)."
    own = discreet_text(text, frozenset({"padova"}))
    assert own == "padova/filler-1 lost 0.08, another site's machine 3/4 of it (another site's machine)."
    assert discreet_text(text, None) == text
