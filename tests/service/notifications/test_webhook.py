"""Webhooks: which addresses may be told, of what, how patiently; and how a receiver knows that it was us."""

from datetime import timedelta
from ipaddress import ip_network
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InputRejected
from service.notifications.models import MaintenanceWindow
from service.notifications.webhook import (
    AllowedAddresses,
    DeliveryResult,
    Webhook,
    WebhookDelivery,
    backoff,
    check_url,
    next_try,
)
from tests.service.conftest import FILLER, NOW
from wire.enums import Severity
from wire.identity import MachineId
from wire.signature import sign, verify

HOUR = timedelta(hours=1)


PLANT = AllowedAddresses((ip_network("10.0.0.0/8"), ip_network("fd00::/8")))


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.7:8080/x?y=1", "https://andon.example", "http://localhost:1", "http://[fd00::1]/x",
     "http://[::ffff:10.0.0.7]/", "http://8.8.8.8/", "http://[2606:4700::1111]/"],
)  # fmt: skip
def test_public_addresses_names_and_those_of_the_plants_networks_may_be_told(url: str) -> None:
    assert check_url(url, PLANT) == url


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.7/", "http://192.168.1.1/", "http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/",
     "http://[::1]/", "http://[::ffff:10.0.0.7]/", "http://100.64.0.1/", "http://[fd00::1]/",
     "http://[64:ff9b::10.0.0.7]/", "http://[2002:a00:7::1]/"],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused_and_the_setting_is_named(url: str) -> None:
    with pytest.raises(InputRejected, match="ALARMCAST_WEBHOOK_NETWORKS"):
        check_url(url, AllowedAddresses())


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "http://ex ample/",
        "file:///etc/passwd",
        "host/x",
        "//host/x",
        "http://",
        "http:///x",
        "http://user@host/",
        "http://user:secret@host/",
        "http://:@host/",
        "http://host:99999/",
        "http://host:0/",
        "http://host:x/",
        "http://[::1/",
        "http://host/#x",
        "http://169.254.169.254/latest",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "http://2852039166/x",
        "http://0xa9fea9fe/x",
        "http://169.254.43518/x",
        "http://[::ffff:169.254.169.254]/x",
        "http://[64:ff9b::a9fe:a9fe]/x",
        "http://0/x",
        "http://0.1.2.3/x",
        "javascript:alert(1)",
    ],
)
def test_other_addresses_are_refused_in_a_sentence(url: str) -> None:
    with pytest.raises(InputRejected, match=r"\.$"):
        check_url(url, AllowedAddresses((ip_network("0.0.0.0/0"), ip_network("::/0"))))


@pytest.mark.parametrize(
    ("site", "machine", "least", "severity", "wanted"),
    [
        (None, None, "low", "low", True),
        (None, None, "high", "medium", False),
        (None, None, "medium", "high", True),
        ("padova", None, "low", "low", True),
        ("lyon", None, "low", "high", False),
        ("padova", "filler-1", "low", "low", True),
        ("padova", "filler-2", "low", "high", False),
    ],
)
def test_a_webhook_is_told_of_what_it_asked_for(
    site: str | None,
    machine: str | None,
    least: str,
    severity: str,
    wanted: bool,  # noqa: FBT001
) -> None:
    hook = Webhook(1, "http://x", "s", Severity(least), site, machine, enabled=True, created_at=NOW)
    assert hook.accepts(FILLER, severity) is wanted
    off = Webhook(1, "http://x", "s", Severity(least), site, machine, enabled=False, created_at=NOW)
    assert not off.accepts(FILLER, severity)


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_pauses_grow_to_two_hours_and_are_spread(attempts: int, chance: float) -> None:
    assert timedelta(seconds=3) < backoff(attempts, chance) <= 2.5 * HOUR
    assert backoff(attempts, chance) <= backoff(attempts + 1, chance)
    assert backoff(attempts, 0.0) <= backoff(attempts, chance)


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=60, max_size=60))
def test_a_delivery_is_tried_for_most_of_a_day_and_then_given_up(chances: list[float]) -> None:
    now, attempts = NOW, 0
    for chance in chances:
        attempts += 1
        again = next_try(WebhookDelivery(1, uuid4(), 1, 1, NOW, attempts), now=now, chance=chance)
        if again is None:
            break
        assert again > now
        now = again
    assert NOW + 21 * HOUR < now <= NOW + 24 * HOUR
    assert 10 < attempts < 40


@pytest.mark.parametrize(
    ("status", "fine"), [(200, True), (204, True), (299, True), (301, False), (500, False), (None, False)]
)
def test_only_a_2xx_is_success(status: int | None, fine: bool) -> None:  # noqa: FBT001
    assert DeliveryResult(status, "").ok is fine


@given(st.text(max_size=50), st.binary(max_size=200), st.integers(0, 2**33))
def test_a_signature_holds_for_its_secret_body_and_time_and_for_nothing_else(
    secret: str, body: bytes, at: int
) -> None:
    secret = secret.encode(errors="ignore").decode()
    header = sign(secret, body, at)
    assert verify(secret, header, body, now=at + 299)
    assert not verify(secret, header, body, now=at + 301)
    assert not verify(secret, header, body + b"x", now=at)
    assert not verify(secret + "x", header, body, now=at)
    assert not verify(secret, header.replace(f"t={at}", f"t={at + 1}"), body, now=at)


@given(st.text(max_size=100))
def test_no_header_makes_a_receiver_stumble(header: str) -> None:
    assert not verify("secret", header, b"{}", now=0)
    assert not verify("secret", f"t={header},v1={header}", b"{}", now=0)


def test_a_window_covers_its_machine_or_its_whole_site_and_none_once_it_was_cancelled_before_it_began() -> None:
    site = MaintenanceWindow(1, "padova", None, NOW, NOW + HOUR, "test", "overhaul")
    assert site.covers(FILLER, NOW)
    assert not site.covers(FILLER, NOW + HOUR)
    assert not site.covers(MachineId("lyon", "filler-1"), NOW)
    one = MaintenanceWindow(1, "padova", "filler-2", NOW, NOW + HOUR, "test", "overhaul")
    assert not one.covers(FILLER, NOW)
    early = MaintenanceWindow(1, "padova", None, NOW, NOW + HOUR, "test", "overhaul", cancelled_at=NOW - HOUR)
    assert not early.covers(FILLER, NOW)
    assert early.end == early.start
