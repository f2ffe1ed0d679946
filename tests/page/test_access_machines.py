"""The access page before a guarded broker and an open one: machines' credentials, and the book of changes."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from edge_agent import settings as edge_settings
from tests.conftest import wait_until
from tests.page.access import MACHINES, is_nowhere, region, row, seen_once
from tests.support.secured_broker import GuardedMosquitto, trying
from tests.system.conftest import Plant
from wire.enums import CredentialState


def test_a_machines_credentials_are_rotated_into_a_file_and_revoked(
    access_at: Callable[..., Page], guarded_plant: Plant, guarded_broker: GuardedMosquitto, tmp_path: Path
) -> None:
    machine = MACHINES[0]
    page = access_at()
    shown = row(page, "Machines at the broker", machine)
    expect(shown).to_contain_text("let in")
    shown.get_by_role("button", name="Issue new credentials").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("thrown out at once")
    dialog.get_by_role("button", name="Issue them").click()
    expect(dialog).to_contain_text("password =")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download padova-filler-1.edge.toml").click()
    file = tmp_path / "edge.toml"
    download.value.save_as(file)
    assert [url for url in asked if not url.startswith("blob:")] == []
    assert seen_once(page) == file.read_text()
    read = edge_settings.load(file, {}, {})
    assert read.broker_username
    assert read.broker_password
    is_nowhere(guarded_plant, page, read.broker_password)
    with trying(guarded_broker, read.broker_username, read.broker_password) as agent:
        assert agent.is_in
        expect(shown.get_by_role("cell").nth(3)).to_have_text("2")
        shown.get_by_role("button", name="Revoke").click()
        dialog.get_by_label("Reason").fill("Its computer was stolen")
        dialog.get_by_role("button", name="Revoke them").click()
        expect(shown).to_contain_text("revoked")
        assert agent.gone.wait(20)
    assert guarded_plant.api.credentials.get(machine).state is CredentialState.REVOKED
    expect(shown.get_by_role("button", name="Revoke")).to_have_count(0)


def test_machines_are_found_by_name_and_shown_some_at_a_time(
    access_at: Callable[..., Page], guarded_plant: Plant
) -> None:
    for number in range(25):
        guarded_plant.api.enrolment.enrol(f"porto/labeller-{number:02}")
    page = access_at()
    machines = region(page, "Machines at the broker").locator("tbody tr")
    expect(machines).to_have_count(20)
    page.get_by_label("Machine", exact=True).fill("labeller")
    expect(page.get_by_text("1 to 20 of 25")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(machines).to_have_count(5)
    expect(machines.last).to_contain_text("porto/labeller-24")
    page.get_by_label("Machine", exact=True).fill("capper")
    expect(machines).to_have_count(1)


def test_a_machine_that_the_broker_has_forgotten_is_said_to_be_locked_out_and_why(
    access_at: Callable[..., Page], guarded_plant: Plant, guarded_broker: GuardedMosquitto
) -> None:
    machine = MACHINES[1]
    guarded_broker.kill()
    guarded_broker.forget(machine)
    guarded_broker.start()
    state = guarded_plant.api.credentials.get
    wait_until(lambda: state(machine).state is CredentialState.LOCKED_OUT, "the service notices", 60)
    page = access_at()
    shown = row(page, "Machines at the broker", machine)
    expect(shown).to_contain_text("locked out")
    expect(shown).to_contain_text("it has lost its password, or keeps it out")
    shown.get_by_role("button", name="Issue new credentials").click()
    page.get_by_role("button", name="Issue them").click()
    seen_once(page)
    expect(shown).to_contain_text("let in")


def test_an_open_broker_is_said_to_have_no_credentials_to_manage(page_at: Callable[..., Page]) -> None:
    page = page_at("/access")
    expect(page.get_by_text("The broker has no dynamic security")).to_be_visible()
    expect(region(page, "Machines at the broker")).not_to_be_visible()
    expect(row(page, "People", "page-admin")).to_be_visible()


def test_the_book_shows_who_did_what_and_turns_its_pages(
    access_at: Callable[..., Page], guarded_plant: Plant
) -> None:
    page = access_at()
    book = region(page, "What was changed").locator("tbody tr")
    page.get_by_role("button", name="Add a person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("anna")
    dialog.get_by_label("verona", exact=True).check()
    dialog.get_by_role("button", name="Add them").click()
    seen_once(page)
    newest = book.first
    expect(newest).to_contain_text(re.compile("page-admin.*add user.*user anna.*viewer of verona.*127.0.0.1"))
    for _ in range(30):  # more than a page of it
        guarded_plant.api.keys.revoke(
            guarded_plant.api.keys.add("short-lived").id, reason="A test needs a thick book"
        )
    page.reload()
    expect(newest).to_contain_text("A test needs a thick book")
    page.get_by_role("button", name="Older").click()
    expect(page.get_by_text("page 2")).to_be_visible()
    page.get_by_role("button", name="Newer").click()
    expect(page.get_by_text("page 1")).to_be_visible()
    expect(page.get_by_role("button", name="Newer")).to_be_disabled()
    page.get_by_label("Only what this one did").fill("page-admin")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(newest).to_contain_text("page-admin")
    expect(book.filter(has_text="short-lived")).to_have_count(0)
    page.get_by_label("Only what this one did").fill("nobody")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("Nobody called nobody has changed anything.")).to_be_visible()
