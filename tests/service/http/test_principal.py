"""Roles cover each other in order, sites contain each other, tokens can be told apart."""

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.auth.tokens import KEY, SESSION, digest, matches, new_token, read_token
from service.errors import Forbidden
from service.http.principal import (
    Principal,
    RequestContext,
    Sites,
    can_see,
    current_sites,
    is_subset,
    request_context,
    require_site,
)
from tests.service.conftest import NOW
from wire.enums import PrincipalKind, Role

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
        assert is_subset(wanted, own) is (own is None)
    else:
        assert is_subset(wanted, own) is all(somebody(own).can_see(site) for site in wanted)


def test_where_nobody_asks_nothing_is_to_be_seen() -> None:
    assert current_sites() == frozenset()
    assert not can_see("padova")
    with pytest.raises(Forbidden):
        require_site("padova")
    with request_context(RequestContext(None, "192.0.2.7", NOW)):
        assert not can_see("padova")


def test_who_asks_sees_their_sites_and_is_told_which_they_are() -> None:
    with request_context(RequestContext(somebody(frozenset({"padova", "graz"})), None, NOW)):
        require_site("padova")
        with pytest.raises(Forbidden, match="no access to the site lyon, and your sites are: graz, padova"):
            require_site("lyon")
        with pytest.raises(Forbidden, match="every site"):
            require_site(None)
    with request_context(RequestContext(somebody(None), None, NOW)):
        require_site("lyon")
        require_site(None)
    assert current_sites() == frozenset()


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
