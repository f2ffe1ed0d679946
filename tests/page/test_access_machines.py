"""The access page with a secured and an unsecured broker: MQTT credentials, and the audit log."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from edge_agent import settings as edge_settings
from tests.conftest import wait_until
from tests.page.access import MACHINES, assert_not_kept, read_secret, region, row
from tests.support.secured_broker import GuardedMosquitto, trying
from tests.system.conftest import Plant
from wire.enums import CredentialState


def test_a_machines_credentials_are_rotated_into_a_file_and_revoked(
    access_at: Callable[..., Page], guarded_plant: Plant, guarded_broker: GuardedMosquitto, tmp_path: Path
) -> None:
    machine = MACHINES[0]
    page = access_at()
    shown = row(page, "MQTT credentials", machine)
    expect(shown).to_contain_text("active")
    shown.get_by_role("button", name="Issue new credentials").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("disconnected immediately")
    dialog.get_by_role("button", name="Issue credentials").click()
    expect(dialog).to_contain_text("password =")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download padova-filler-1.edge.toml").click()
    file = tmp_path / "edge.toml"
    download.value.save_as(file)
    assert [url for url in asked if not url.startswith("blob:")] == []
    assert read_secret(page) == file.read_text()
    read = edge_settings.load(file, {}, {})
    assert read.broker_username
    assert read.broker_password
    assert_not_kept(guarded_plant, page, read.broker_password)
    with trying(guarded_broker, read.broker_username, read.broker_password) as agent:
        assert agent.is_in
        expect(shown.get_by_role("cell").nth(3)).to_have_text("2")
        shown.get_by_role("button", name="Revoke").click()
        dialog.get_by_label("Reason").fill("Its computer was stolen")
        dialog.get_by_role("button", name="Revoke credentials").click()
        expect(shown).to_contain_text("revoked")
        assert agent.gone.wait(20)
    assert guarded_plant.api.credentials.get(machine).state is CredentialState.REVOKED
    expect(shown.get_by_role("button", name="Revoke")).to_have_count(0)


def test_machines_are_searched_and_paged(access_at: Callable[..., Page], guarded_plant: Plant) -> None:
    for number in range(25):
        guarded_plant.api.enrolment.enrol(f"porto/labeller-{number:02}")
    page = access_at()
    machines = region(page, "MQTT credentials").locator("tbody tr")
    expect(machines).to_have_count(20)
    page.get_by_label("Machine", exact=True).fill("labeller")
    expect(page.get_by_text("1 to 20 of 25")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(machines).to_have_count(5)
    expect(machines.last).to_contain_text("porto/labeller-24")
    page.get_by_label("Machine", exact=True).fill("capper")
    expect(machines).to_have_count(1)


def test_a_machine_unknown_to_the_broker_is_shown_as_locked_out(
    access_at: Callable[..., Page], guarded_plant: Plant, guarded_broker: GuardedMosquitto
) -> None:
    machine = MACHINES[1]
    guarded_broker.kill()
    guarded_broker.forget(machine)
    guarded_broker.start()
    state = guarded_plant.api.credentials.get
    wait_until(lambda: state(machine).state is CredentialState.LOCKED_OUT, "the service notices", 60)
    page = access_at()
    shown = row(page, "MQTT credentials", machine)
    expect(shown).to_contain_text("locked out")
    expect(shown).to_contain_text("its password is lost or its client is disabled")
    shown.get_by_role("button", name="Issue new credentials").click()
    page.get_by_role("button", name="Issue credentials").click()
    read_secret(page)
    expect(shown).to_contain_text("active")


def test_an_unsecured_broker_has_no_credentials_to_manage(page_at: Callable[..., Page]) -> None:
    page = page_at("/access")
    expect(page.get_by_text("The MQTT broker has no dynamic security")).to_be_visible()
    expect(region(page, "MQTT credentials")).not_to_be_visible()
    expect(row(page, "Users", "page-admin")).to_be_visible()


def test_the_audit_log_is_filtered_and_paged(access_at: Callable[..., Page], guarded_plant: Plant) -> None:
    page = access_at()
    entries = region(page, "Audit log").locator("tbody tr")
    page.get_by_role("button", name="Add user …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("User name").fill("anna")
    dialog.get_by_label("verona", exact=True).check()
    dialog.get_by_role("button", name="Add user", exact=True).click()
    read_secret(page)
    newest = entries.first
    expect(newest).to_contain_text(re.compile("page-admin.*add user.*user anna.*viewer of verona.*127.0.0.1"))
    for _ in range(30):  # more than a page of it
        guarded_plant.api.keys.revoke(
            guarded_plant.api.keys.add("short-lived").id, reason="A test needs many entries"
        )
    page.reload()
    expect(newest).to_contain_text("A test needs many entries")
    page.get_by_role("button", name="Older").click()
    expect(page.get_by_text("page 2")).to_be_visible()
    page.get_by_role("button", name="Newer").click()
    expect(page.get_by_text("page 1")).to_be_visible()
    expect(page.get_by_role("button", name="Newer")).to_be_disabled()
    page.get_by_label("Filter by user").fill("page-admin")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(newest).to_contain_text("page-admin")
    expect(entries.filter(has_text="short-lived")).to_have_count(0)
    page.get_by_label("Filter by user").fill("nobody")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text("No entries for nobody.")).to_be_visible()
