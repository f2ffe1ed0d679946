"""The enrol form in front of a guarded broker: edge.toml is there to be kept, once, and it lets the machine in."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from edge_agent import settings as edge_settings
from tests.conftest import require, wait_until
from tests.guarded import GuardedMosquitto, guarded_in, has_plugin, trying
from tests.page.conftest import Tabs, signed_in
from tests.page.test_learning import form_of
from tests.system.conftest import Plant
from wire.words import Role


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
    wait_until(lambda: plant.api.health.status().broker.guarded, "the service knows that the broker is guarded")
    yield plant
    plant.service.kill()


@pytest.fixture
def guarded_page_at(plant: Plant, browser: Browser) -> Iterator[Callable[..., Page]]:
    tabs = Tabs(browser, plant.address, {Role.ADMIN: signed_in(plant, Role.ADMIN)})
    yield tabs
    for context in tabs.contexts:
        context.close()
    assert tabs.complaints == []


def test_whoever_enrols_a_machine_can_keep_its_edge_toml_once(
    guarded_page_at: Callable[..., Page], guarded: GuardedMosquitto, tmp_path: Path
) -> None:
    page = guarded_page_at("/learning?site=padova&machine=filler-9")
    form = form_of(page)
    form.get_by_label("Plant's time zone").fill("Europe/Rome")
    form.get_by_role("button", name="Enrol").click()
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

    form.get_by_role("button", name="Enrol another").click()
    expect(form.get_by_role("button", name="Download edge.toml")).to_have_count(0)
    form.get_by_label("Site").fill("padova")
    form.get_by_label("Machine").fill("filler-9")
    form.get_by_role("button", name="Enrol").click()
    expect(form.get_by_text("its alarms are taken from now on")).to_be_visible()
    expect(form.get_by_role("button", name="Download edge.toml")).to_have_count(0)
    assert read.broker_password not in page.content()
