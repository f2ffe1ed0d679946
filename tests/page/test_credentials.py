"""Enrolment with a secured broker: edge.toml can be downloaded once, and its credentials work."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from edge_agent import settings as edge_settings
from tests.conftest import require, wait_until
from tests.page.conftest import Tabs, signed_in
from tests.page.enrolment import form_of
from tests.support.secured_broker import GuardedMosquitto, guarded_in, has_plugin, trying
from tests.system.conftest import Plant
from wire.enums import Role


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GuardedMosquitto]:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    broker = guarded_in(tmp_path / "guarded")
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def plant(tmp_path: Path, guarded: GuardedMosquitto) -> Iterator[Plant]:
    plant = Plant(tmp_path, guarded, environment=guarded.environment)
    plant.start_service()
    wait_until(lambda: plant.api.health.status().broker.secured, "the service knows that the broker is guarded")
    yield plant
    plant.service.kill()


@pytest.fixture
def guarded_page_at(plant: Plant, browser: Browser) -> Iterator[Callable[..., Page]]:
    tabs = Tabs(browser, plant.address, {Role.ADMIN: signed_in(plant, Role.ADMIN)})
    yield tabs
    for context in tabs.contexts:
        context.close()
    assert tabs.complaints == []


def test_edge_toml_can_be_downloaded_once(
    guarded_page_at: Callable[..., Page], guarded: GuardedMosquitto, tmp_path: Path
) -> None:
    page = guarded_page_at("/learning?site=padova&machine=filler-9")
    form = form_of(page)
    form.get_by_label("Time zone of the plant").fill("Europe/Rome")
    form.get_by_role("button", name="Enrol", exact=True).click()
    with page.expect_download() as download:
        form.get_by_role("button", name="Download edge.toml").click()
    assert download.value.suggested_filename == "padova-filler-9.edge.toml"
    file = tmp_path / "edge.toml"
    download.value.save_as(file)
    read = edge_settings.load(file, {}, {})
    assert (read.site, read.machine, read.source_timezone) == ("padova", "filler-9", "Europe/Rome")
    assert read.broker_username
    assert read.broker_password
    with trying(guarded, read.broker_username, read.broker_password) as agent:
        assert agent.is_in
    expect(form.get_by_role("status").filter(has_text="padova-filler-9.edge.toml")).to_be_visible()

    form.get_by_role("button", name="Enrol another machine").click()
    expect(form.get_by_role("button", name="Download edge.toml")).to_have_count(0)
    form.get_by_label("Site").fill("padova")
    form.get_by_label("Machine ID").fill("filler-9")
    form.get_by_role("button", name="Enrol", exact=True).click()
    expect(form.get_by_text("Alarms of this machine are stored from now on")).to_be_visible()
    expect(form.get_by_role("button", name="Download edge.toml")).to_have_count(0)
    assert read.broker_password not in page.content()


def test_an_imported_history_is_in_edge_toml(guarded_page_at: Tabs, plant: Plant, tmp_path: Path) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    log, old, file = tmp_path / "two.csv", tmp_path / "old.csv", tmp_path / "edge.toml"
    local = (now - timedelta(hours=2)).astimezone(ZoneInfo("Europe/Rome"))
    log.write_text("".join(f"{local:%Y-%m-%d %H:%M:%S},{code},{code % 2}\n" for code in range(10)))
    old.write_text("2019-12-28 10:00:00,5,1\n")
    page = guarded_page_at("/learning?site=padova&machine=filler-8", width=390)
    form = form_of(page)
    form.get_by_label("Time zone of the plant").fill("Europe/Rome")
    form.get_by_label("Alarm history file").set_input_files(old)
    form.get_by_role("button", name="Preview history").click()
    expect(form.get_by_text("is too old: its newest alarm is of 2019-12-28")).to_be_visible()
    form.get_by_label("Alarm history file").set_input_files(log)
    form.get_by_role("button", name="Preview history").click()
    expect(form.get_by_text("Its serials: 0 (5 rows), 1 (5 rows).").first).to_be_visible()
    expect(form.get_by_label("Only rows of serial")).to_have_attribute("aria-invalid", "true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert plant.api.machines.list().machines == []
    form.get_by_label("Only rows of serial").select_option("1")
    form.get_by_role("button", name="Preview history").click()
    form.get_by_role("button", name="Enrol and import history").click()
    expect(form.get_by_text("5 rows: 5 imported, none rejected. Timestamps without a zone")).to_be_visible()
    with page.expect_download() as download:
        form.get_by_role("button", name="Download edge.toml").click()
    download.value.save_as(file)
    read = edge_settings.load(file, {}, {})
    assert (read.source_timezone, read.source_serial) == ("Europe/Rome", "1")
    assert read.source_since == now - timedelta(hours=2) + timedelta(microseconds=1)
    assert read.broker_password
    assert {alarm.at for alarm in plant.api.machines.alarms("padova/filler-8")} == {now - timedelta(hours=2)}
