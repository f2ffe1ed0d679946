"""Nouns whose calls differ from the rest: names that Python has taken, answers without a body, files."""

import csv
from datetime import timedelta

import pytest

from alarmcast import Client, NotFound
from service.app.stores import Stores
from service.machines.models import Machine
from tests.service.conftest import NOW, raise_alarms


def test_a_maintenance_window_begins_when_it_was_asked_to(client: Client, filler: Machine) -> None:
    begin, end = NOW + timedelta(hours=2), NOW + timedelta(hours=4)
    made = client.maintenance.create(
        filler.id.site, machine=filler.id.machine, since=begin, until=end, reason="oil"
    )
    assert (made.start, made.until, made.active) == (begin, end, False)
    assert list(client.maintenance.windows()) == [made]
    assert client.maintenance.cancel(made.id).cancelled_at is not None


def test_notifications_can_be_narrowed_to_open_ones(client: Client) -> None:
    assert list(client.notifications.all(is_open=True)) == []


def test_what_is_removed_leaves_no_answer(client: Client) -> None:
    made = client.webhooks.add("http://127.0.0.1:9/hook", reason="for the night shift")
    assert client.webhooks.list().webhooks == [client.webhooks.get(made.id)]
    client.webhooks.remove(made.id, reason="no longer")
    with pytest.raises(NotFound):
        client.webhooks.get(made.id)


def test_a_webhook_is_of_a_site_that_has_machines(client: Client, filler: Machine) -> None:
    with pytest.raises(NotFound, match="No machine is enrolled at atlantis"):
        client.webhooks.add("http://127.0.0.1:9/hook", site="atlantis")
    assert client.webhooks.add("http://127.0.0.1:9/hook", site=filler.id.site).site == filler.id.site


def test_a_file_comes_in_pieces_that_join(client: Client, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *((NOW - timedelta(minutes=n), 139) for n in range(1, 26)))
    text = b"".join(client.exports.alarms(site="padova", since=NOW - timedelta(minutes=20))).decode()
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 20
    assert {row["code"] for row in rows} == {"139"}
    (top,) = csv.DictReader(b"".join(client.exports.top()).decode().splitlines())
    assert (top["code"], top["alarms"]) == ("139", "25")
    with pytest.raises(NotFound):
        list(client.exports.rows(site="atlantis"))
