"""An address as limits count it: nobody gets another try by taking the next address of their own network."""

import pytest

from service.auth.login import PER_IP, LoginThrottle
from service.http.rate_limit import network_of


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("?", "?"),
        ("a proxy's word", "a proxy's word"),
    ],
)
def test_an_ipv6_address_is_counted_by_its_network_and_an_ipv4_address_by_itself(
    address: str, network: str
) -> None:
    assert network_of(address) == network


def test_guesses_from_many_addresses_of_one_network_wait_as_those_from_one() -> None:
    tries = LoginThrottle(lambda: 0.0)
    for number in range(PER_IP.free_attempts):
        assert tries.attempt(f"user-{number}", f"2001:db8::{number:x}").begin() == 0
    assert tries.attempt("maria", "2001:db8::ffff").begin() > 0
    assert tries.attempt("maria", "2001:db8:0:1::1").begin() == 0


def test_who_signed_in_from_a_network_is_known_at_its_other_addresses() -> None:
    tries = LoginThrottle(lambda: 0.0)
    tries.remember_address("maria", "2001:db8::1")
    assert len(tries.attempt("maria", "2001:db8::2").shared) == 1
    assert len(tries.attempt("maria", "2001:db8:0:1::2").shared) == 2
