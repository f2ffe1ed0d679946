"""What to do and whether it helped, in a real browser: an admin writes responses, operators answer alarms."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.page.conftest import LEARNED, Stage
from wire.enums import Role

PATH = f"/machines/{LEARNED[1]}"


def test_an_admin_writes_a_response_and_a_wrong_link_is_refused_at_its_field(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at("/alarms")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Edit code 139").click()
    dialog.get_by_label("Corrective action").fill("Clear the chute")
    dialog.get_by_label("Link to the procedure").fill("ftp://manuals.example/139")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator("[name=link][aria-invalid]")).to_be_visible()
    dialog.get_by_label("Link to the procedure").fill("https://manuals.example/139")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="Clear the chute")).to_have_attribute(
        "href", "https://manuals.example/139"
    )
    assert stage.plant.api.catalogue.entry(139).response.action == "Clear the chute"
    assert page_at("/alarms", role=Role.OPERATOR).get_by_role("button", name="Edit code 139").count() == 0


def test_an_operator_answers_an_alarm_in_one_tap_and_others_see_it(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at(PATH, role=Role.OPERATOR)
    page.locator(".ac-forecast-row", has_text="139").click()
    response = page.locator(".ac-response")
    expect(response).to_contain_text("What to do: 139")
    expect(response).to_contain_text("Corrective action")
    response.get_by_label("Note").fill("Roller cleaned")
    response.get_by_role("button", name="Wrong").click()
    expect(response.get_by_role("button", name="Wrong")).to_have_attribute("aria-pressed", "true")
    response.get_by_role("button", name="Handled").click()
    expect(response.get_by_role("button", name="Handled")).to_have_attribute("aria-pressed", "true")
    (given,) = stage.plant.api.answers.all(code=139)
    assert (given.answer, f"{given.site}/{given.machine}", given.actor) == ("handled", LEARNED[1], "page-operator")
    elsewhere = page_at(f"/machines/{LEARNED[0]}", role=Role.VIEWER)
    elsewhere.locator(".ac-forecast-row", has_text="139").click()
    expect(elsewhere.locator(".ac-answers li")).to_contain_text(f"Handled {LEARNED[1]}")
    expect(elsewhere.locator(".ac-response").get_by_role("button")).to_have_count(0)
    counts = page_at("/learning", role=Role.VIEWER).get_by_role("region", name="Answers of operators")
    expect(counts.locator("tbody tr")).to_contain_text(LEARNED[1])
