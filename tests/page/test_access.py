"""The access page in a real browser: users, API keys and permissions."""

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from alarmcast import Client, NotSignedIn
from tests.page.access import MACHINES, assert_not_kept, read_secret, row
from tests.page.accessibility import broken
from tests.page.conftest import PASSWORD, signed_in
from tests.system.conftest import Plant
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE


def token_of(plant: Plant, name: str, role: Role, sites: list[str] | None) -> str:
    """Create a user and return the token of a session."""
    plant.api.users.add(name, role=role, sites=sites, password=PASSWORD)
    with Client(plant.address) as visitor:
        return visitor.session.login(name, PASSWORD).token


def may_sign_in(plant: Plant, name: str, password: str) -> bool:
    with Client(plant.address) as visitor:
        try:
            visitor.session.login(name, password)
        except NotSignedIn:
            return False
    return True


def test_a_user_is_added_with_a_password_that_is_shown_once(
    access_at: Callable[..., Page], guarded_plant: Plant
) -> None:
    page = access_at()
    page.get_by_role("button", name="Add user …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("User name")).to_be_focused()
    dialog.get_by_label("User name").fill("maria")
    dialog.get_by_label("Role").select_option("operator")
    dialog.get_by_label("padova", exact=True).check()
    dialog.get_by_role("button", name="Add user", exact=True).click()
    expect(dialog).to_contain_text("Temporary password of maria")
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.get_by_role("status")).to_contain_text("Copied.")
    password = read_secret(page)
    expect(row(page, "Users", "maria")).to_contain_text(re.compile("operator.*padova.*never.*temporary"))
    assert_not_kept(guarded_plant, page, password)
    with Client(guarded_plant.address) as maria:
        begun = maria.session.login("maria", password)
    assert (begun.role, begun.sites, begun.must_change) == (Role.OPERATOR, ["padova"], True)


def test_an_api_error_is_shown_at_its_field_and_values_stay(
    access_at: Callable[..., Page],
) -> None:
    page = access_at()
    page.get_by_role("button", name="Add user …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("User name").fill("Maria Rossi")
    dialog.get_by_role("button", name="Add user", exact=True).click()
    expect(dialog).to_contain_text("A name has 1 to 63 lower-case letters")
    expect(dialog.get_by_label("User name")).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_label("User name")).to_be_focused()
    expect(dialog.get_by_label("User name")).to_have_value("Maria Rossi")
    dialog.get_by_label("User name").fill("page-admin")
    dialog.get_by_role("button", name="Add user", exact=True).click()
    expect(dialog).to_contain_text("Name at least one site, or none at all for every site.")
    dialog.get_by_label("all sites, including").check()
    dialog.get_by_role("button", name="Add user", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("page-admin")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Add user …")).to_be_focused()


def test_role_and_sites_of_a_user_are_changed(access_at: Callable[..., Page], guarded_plant: Plant) -> None:
    guarded_plant.api.users.add("luca", role=Role.VIEWER, sites=["padova"])
    page = access_at()
    page.get_by_role("button", name="Change luca").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("padova", exact=True)).to_be_checked()
    dialog.get_by_label("padova", exact=True).uncheck()
    dialog.get_by_label("verona", exact=True).check()
    dialog.get_by_label("Sites without machines yet").fill("lyon, porto")
    dialog.get_by_label("Role").select_option("admin")
    dialog.get_by_role("button", name="Save").click()
    expect(row(page, "Users", "luca")).to_contain_text(re.compile("admin.*lyon, porto, verona"))
    luca = next(one for one in guarded_plant.api.users.list().users if one.name == "luca")
    assert (luca.role, luca.sites) == (Role.ADMIN, ["lyon", "porto", "verona"])
    page.get_by_role("button", name="Change luca").click()
    dialog.get_by_label("all sites, including").check()
    dialog.get_by_role("button", name="Save").click()
    expect(row(page, "Users", "luca")).to_contain_text("all sites")
    assert next(one for one in guarded_plant.api.users.list().users if one.name == "luca").sites is None


def test_a_password_is_reset_and_a_user_removed_only_after_confirmation(
    access_at: Callable[..., Page], guarded_plant: Plant
) -> None:
    guarded_plant.api.users.add("leaver", role=Role.VIEWER, password=PASSWORD)
    page = access_at()
    page.get_by_role("button", name="Reset the password of leaver").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("leaver is signed out everywhere")
    dialog.get_by_role("button", name="Cancel").click()
    assert may_sign_in(guarded_plant, "leaver", PASSWORD)
    page.get_by_role("button", name="Reset the password of leaver").click()
    dialog.get_by_role("button", name="Reset password").click()
    password = read_secret(page)
    assert not may_sign_in(guarded_plant, "leaver", PASSWORD)
    assert may_sign_in(guarded_plant, "leaver", password)
    page.get_by_role("button", name="Remove leaver").click()
    dialog.get_by_role("button", name="Remove user").click()
    expect(row(page, "Users", "leaver")).to_have_count(0)
    assert "leaver" not in {one.name for one in guarded_plant.api.users.list().users}
    expect(row(page, "Users", "you").get_by_role("button")).to_have_count(0)


def test_an_api_key_is_shown_once_works_and_is_revoked_with_a_reason(
    access_at: Callable[..., Page], guarded_plant: Plant
) -> None:
    page = access_at()
    page.get_by_role("button", name="Create API key …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Application").fill("andon board")
    dialog.get_by_label("padova", exact=True).check()
    dialog.get_by_label("Expires after (days)").fill("30")
    dialog.get_by_role("button", name="Create API key", exact=True).click()
    expect(dialog).to_contain_text("API key of andon board")
    key = read_secret(page)
    assert_not_kept(guarded_plant, page, key)
    with Client(guarded_plant.address, key=key) as program:
        assert {one.site for one in program.machines.list().machines} == {"padova"}
        made = next(one for one in guarded_plant.api.keys.list().keys if one.name == "andon board")
        shown = row(page, "API keys", "andon board")
        expect(shown).to_contain_text(f"ack_{made.prefix}_…")
        expect(shown).to_contain_text(f"{made.expires_at:%d %b %Y}")
        shown.get_by_role("button", name="Revoke").click()
        expect(dialog.get_by_role("button", name="Revoke", exact=True)).to_be_disabled()
        dialog.get_by_label("Reason").fill("The board was sold")
        dialog.get_by_role("button", name="Revoke", exact=True).click()
        expect(shown).to_have_count(0)
        with pytest.raises(NotSignedIn):
            program.machines.list()
    assert guarded_plant.api.audit.page(limit=1).entries[0].reason == "The board was sold"


def test_an_operator_has_no_link_and_no_access(guarded_plant: Plant) -> None:
    operator = {SESSION_COOKIE: signed_in(guarded_plant, Role.OPERATOR)}
    answer = httpx.get(f"{guarded_plant.address}/access", cookies=operator, timeout=10)
    assert answer.status_code == 403
    assert "Administrators only" in answer.text
    assert "page-admin" not in answer.text
    for path in ("/", "/access"):
        assert "/access" not in httpx.get(f"{guarded_plant.address}{path}", cookies=operator, timeout=10).text
    admin = {SESSION_COOKIE: signed_in(guarded_plant, Role.ADMIN)}
    assert "/access" in httpx.get(f"{guarded_plant.address}/", cookies=admin, timeout=10).text


def test_an_admin_of_one_site_sees_and_assigns_only_that_site(
    access_at: Callable[..., Page], guarded_plant: Plant
) -> None:
    guarded_plant.api.users.add("here", role=Role.VIEWER, sites=["verona"])
    guarded_plant.api.users.add("there", role=Role.VIEWER, sites=["padova"])
    guarded_plant.api.keys.add("key-here", sites=["verona"])
    guarded_plant.api.keys.add("key-there", sites=["padova"])
    page = access_at(token_of(guarded_plant, "site-admin", Role.ADMIN, ["verona"]))
    expect(row(page, "Users", "here").first).to_be_visible()
    expect(row(page, "API keys", "key-here")).to_be_visible()
    expect(row(page, "MQTT credentials", "verona/capper-1")).to_be_visible()
    for other in ("there", "key-there", "page-admin", "padova"):
        expect(page.get_by_text(other, exact=True)).to_have_count(0)
    expect(page.get_by_role("heading", name="Audit log")).to_have_count(0)
    page.get_by_role("button", name="Add user …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("verona", exact=True)).to_be_checked()
    expect(dialog.get_by_label("all sites, including")).to_have_count(0)
    dialog.get_by_label("User name").fill("helper")
    dialog.get_by_role("button", name="Add user", exact=True).click()
    read_secret(page)
    helper = next(one for one in guarded_plant.api.users.list().users if one.name == "helper")
    assert (helper.role, helper.sites) == (Role.VIEWER, ["verona"])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_dialogs_are_accessible(access_at: Callable[..., Page], guarded_plant: Plant, *, dark: bool) -> None:
    page = access_at(dark=dark)
    page.get_by_role("button", name="Create API key …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert broken(page) == []
    dialog.get_by_label("Application").fill(f"andon {dark}")
    dialog.get_by_label("verona", exact=True).check()
    dialog.get_by_role("button", name="Create API key", exact=True).click()
    expect(dialog.get_by_label("Secret, shown once")).to_be_visible()
    assert broken(page) == []
    read_secret(page)
    assert f"andon {dark}" in {one.name for one in guarded_plant.api.keys.list().keys}


@pytest.mark.parametrize("width", [390, 1920])
def test_the_page_fits_the_screen(access_at: Callable[..., Page], width: int) -> None:
    page = access_at(width=width)
    expect(row(page, "MQTT credentials", MACHINES[1])).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Create API key …").click()
    box = page.get_by_role("dialog").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
