"""The learning page in a real browser: enrolment, rollback and promotion, forgetting, memory."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from alarmcast import Client
from tests.page.conftest import LEARNED, Stage
from tests.page.enrolment import form_of
from tests.support.learning_helpers import MACHINES

NEW = MACHINES[2]
LONG = 150_000  # milliseconds: an upper bound


@pytest.fixture
def client(stage: Stage) -> Iterator[Client]:
    with Client(stage.plant.address, key=stage.plant.key) as made:
        yield made


def row(page: Page, region: str, text: str) -> Locator:
    return page.get_by_role("region", name=region).get_by_role("row").filter(has_text=text)


def champion(client: Client) -> str:
    return next(one.version for one in client.models.list().models if one.status.value == "champion")


def test_an_api_error_is_shown_at_its_field_and_values_stay(
    page_at: Callable[..., Page],
) -> None:
    page = page_at("/learning?site=padova&machine=Filler!")
    form = form_of(page)
    expect(form.get_by_label("Machine ID")).to_have_value("Filler!")
    form.get_by_label("Display name").fill("Filler, the third")
    form.get_by_role("button", name="Enrol").click()
    expect(form.get_by_label("Machine ID")).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_label("Machine ID")).to_be_focused()
    expect(form.get_by_label("Site")).not_to_have_attribute("aria-invalid", "true")
    form.get_by_label("Machine ID").fill("filler-2")
    form.get_by_label("Time zone of the plant").fill("Mars/Olympus")
    form.get_by_role("button", name="Enrol").click()
    expect(form.get_by_text("'Mars/Olympus' is no time zone; write one like Europe/Rome.")).to_be_visible()
    expect(form.get_by_label("Display name")).to_have_value("Filler, the third")


def test_a_machine_is_enrolled_with_its_history_and_becomes_active(
    page_at: Callable[..., Page], stage: Stage, client: Client, tmp_path: Path
) -> None:
    past = tmp_path / "past.csv"
    past.write_bytes(stage.history.read_bytes() + b"rubbish\n")
    site, machine = NEW.split("/")
    page = page_at(f"/learning?site={site}&machine={machine}")
    form = form_of(page)
    form.get_by_label("Time zone of the plant").fill("Europe/Rome")
    form.get_by_label("Alarm history file").set_input_files(past)
    form.get_by_label("Only rows of serial").fill("2")
    form.get_by_role("button", name="Preview history").click()
    form.get_by_role("button", name="Enrol and import history").click(timeout=LONG)
    result = form.locator(".ac-enrol-result")
    expect(result).to_contain_text(
        re.compile(r"[\d,]+ rows: [\d,]+ imported, 1 invalid rows in quarantine\. .* read as Europe/Rome\."),
        timeout=LONG,
    )
    expect(result).to_contain_text("a row needs at least a timestamp and an alarm code")
    expect(result).to_contain_text(re.compile(r"(completed|rejected).*\(v\d+\)"), timeout=LONG)
    expect(row(page, "Machines", NEW)).to_contain_text("active", timeout=LONG)
    known = client.machines.get(NEW)
    assert (known.state.value, known.time_zone) == ("live", "Europe/Rome")
    newest = client.models.list().models[0]
    expect(row(page, "Model versions", newest.summary)).to_contain_text(newest.version)
    # Retired again, so that other tests find the plant unchanged.
    row(page, "Machines", NEW).get_by_role("button", name=f"Retire {NEW}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Retire", exact=True)).to_be_disabled()
    dialog.get_by_label("Reason").fill("It has moved to another plant")
    dialog.get_by_role("button", name="Retire", exact=True).click()
    expect(row(page, "Machines", NEW)).to_have_count(0)
    assert NEW not in [f"{one.site}/{one.machine}" for one in client.machines.list().machines]


def test_a_version_is_rolled_back_with_a_reason_and_promoted_again(
    page_at: Callable[..., Page], client: Client
) -> None:
    page = page_at("/learning")
    before = champion(client)
    parent = client.models.get(before).parent
    if parent is None:  # the gate kept the second machine out: let it in by force
        second = client.models.list().models[0].version
        client.models.promote(second, reason="A test needs two that have served", force=True)
        before, parent = second, before
    page.get_by_role("button", name=f"Roll back to {parent}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{parent} makes all forecasts from now on")
    expect(dialog.get_by_role("button", name="Roll back")).to_be_disabled()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert champion(client) == before
    page.get_by_role("button", name=f"Roll back to {parent}").click()
    dialog.get_by_label("Reason").fill("It forgot too much")
    dialog.get_by_role("button", name=f"Roll back to {parent}").click()
    expect(page.get_by_text(f"Rolled back from {before}: {parent} is active.")).to_be_visible()
    expect(row(page, "Model versions", "★")).to_contain_text(parent)
    assert champion(client) == parent
    page.get_by_role("button", name=f"Promote {before}").click()
    dialog.get_by_label("Reason").fill("It was better after all")
    for force in dialog.get_by_role("checkbox").all():
        force.check()
    dialog.get_by_role("button", name=f"Promote {before}").click()
    expect(row(page, "Model versions", "★")).to_contain_text(before)
    assert champion(client) == before


def test_a_conflict_is_shown_in_the_dialog(page_at: Callable[..., Page], client: Client) -> None:
    page = page_at("/learning")
    before = champion(client)
    other = next(one for one in client.models.list().models if one.version != before and not one.pruned)
    page.get_by_role("button", name=f"Promote {other.version}").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("Somebody else is faster")
    for force in dialog.get_by_role("checkbox").all():
        force.check()
    client.models.promote(other.version, reason="Faster", force=True)
    dialog.get_by_role("button", name=f"Promote {other.version}").click()
    expect(dialog.get_by_role("alert")).to_have_text(f"{other.version} serves already.")
    client.models.promote(before, reason="As it was", force=True)


def test_the_forgetting_matrix_shows_each_validation_result(page_at: Callable[..., Page], client: Client) -> None:
    page = page_at("/learning")
    detail = client.models.get(champion(client))
    part = page.locator("#forgetting")
    marks = [one for exams in detail.matrix.values() for one in exams.values()]
    for one in marks:
        expect(part.locator("svg")).to_contain_text(f"{one.average_precision:.2f}")
    part.get_by_role("combobox", name="Metric").select_option("brier_skill")
    for one in marks:
        expect(part.locator("svg")).to_contain_text(f"{one.brier_skill:.2f}")
    part.get_by_text("Show as table").click()
    table = part.get_by_role("region", name="Brier skill by version and machine")
    expect(table.get_by_role("columnheader", name=LEARNED[0])).to_be_visible()


def test_the_replay_memory_is_that_of_the_api(page_at: Callable[..., Page], client: Client) -> None:
    page = page_at("/learning")
    memory = client.memory.get()
    part = page.locator("#memory")
    assert memory.kl_to_uniform is not None
    expect(part.locator("dl")).to_contain_text(f"{memory.kl_to_uniform:.3f}")
    windows = sum(one.replayed + one.held_out for one in memory.machines)
    expect(part.locator("dl")).to_contain_text(f"{windows:,}")
    expect(part.get_by_role("img", name=re.compile("KL divergence\\) by version"))).to_be_visible()


@pytest.mark.parametrize("width", [390, 1920])
def test_the_page_fits_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at("/learning", width=width)
    expect(page.locator("#memory svg").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
