"""The alarm history in the enrolment form: a preview before anything is stored, columns, presets, serials."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import broker_in, require
from tests.page.accessibility import broken
from tests.page.conftest import Tabs, signed_in
from tests.page.enrolment import form_of
from tests.system.conftest import Plant
from wire.enums import Role

AT = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(days=2)


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    require(shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    folder = tmp_path_factory.mktemp("history")
    broker = broker_in(folder / "mosquitto")
    broker.start()
    plant = Plant(folder, broker)
    plant.start_service()
    yield plant
    plant.service.kill()
    broker.kill()


@pytest.fixture
def tabs(plant: Plant, browser: Browser) -> Iterator[Tabs]:
    tabs = Tabs(browser, plant.address, {Role.ADMIN: signed_in(plant, Role.ADMIN)})
    yield tabs
    for context in tabs.contexts:
        context.close()
    assert tabs.complaints == []


def test_a_wincc_export_is_recognised_shown_and_imported(tabs: Tabs, plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "Alarm_log0.csv"
    rows = [
        f'{AT + timedelta(minutes=n):%d.%m.%Y %H:%M:%S};{100 + n % 3};{1 if n % 2 else 0};2;"Film {n % 3} torn"\n'
        for n in range(40)
    ]
    log.write_text("TimeString;MsgNumber;StateAfter;MsgClass;MsgText\n" + "".join(rows) + "yesterday;7;1;1;x\n")
    page = tabs("/learning?site=padova&machine=wincc", width=1440)
    form = form_of(page)
    form.get_by_label("Time zone of the plant").fill("UTC")
    form.get_by_label("Alarm history file").set_input_files(log)
    form.get_by_role("button", name="Preview history").click()
    preview = form.get_by_role("region", name="Preview of Alarm_log0.csv")
    expect(preview).to_contain_text("20 alarms from")
    expect(form.get_by_label("Format of the file")).to_have_value("wincc")
    expect(preview).to_contain_text("20 ignored: they clear an alarm.")
    expect(preview).to_contain_text("One row cannot be read")
    expect(preview).to_contain_text("Line 42: 'yesterday' is not a time like %d.%m.%Y %H:%M:%S.")
    expect(preview.get_by_role("row").nth(2)).to_contain_text("101")
    expect(page.locator(".q-loading-bar")).to_have_attribute("aria-hidden", "true")
    assert broken(page) == []
    assert plant.api.machines.list().machines == []
    form.get_by_label("Time zone of the file").fill("Europe/Rome")
    expect(form.get_by_role("button", name="Enrol and import history")).to_have_count(0)
    form.get_by_label("Time zone of the file").fill("")
    form.get_by_role("button", name="Enrol and import history").click()
    expect(form.get_by_text("41 rows: 20 imported, 1 invalid rows in quarantine.")).to_be_visible()
    stored = {(alarm.at, alarm.code) for alarm in plant.api.machines.alarms("padova/wincc")}
    assert stored == {(AT + timedelta(minutes=n), 100 + n % 3) for n in range(1, 40, 2)}


def test_any_columns_can_be_named_and_the_serial_is_chosen(tabs: Tabs, plant: Plant, tmp_path: Path) -> None:
    log, codes = tmp_path / "meldungen.csv", tmp_path / "codes.csv"
    rows = "".join(f"{AT:%d.%m.%Y};{AT:%H:%M:%S};Tür {n} offen;{'AB'[n % 2]}\n" for n in range(6))
    log.write_bytes(f"Datum;Uhrzeit;Meldung;Anlage\n{rows}".encode("cp1252"))
    codes.write_text("name,code\n" + "".join(f"Tür {n} offen,{n}\n" for n in range(6)), encoding="utf-8")
    page = tabs("/learning?site=padova&machine=columns", width=390, dark=True)
    form = form_of(page)
    form.get_by_label("Time zone of the plant").fill("UTC")
    form.get_by_label("Alarm history file").set_input_files(log)
    form.get_by_label("Format of the file").select_option("other columns")
    form.get_by_label("Delimiter").fill(";")
    form.get_by_role("button", name="Preview history").click()
    time = form.get_by_label("Column of the time")
    expect(time).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_role("alert").first).to_contain_text("Its columns: Datum, Uhrzeit, Meldung, Anlage.")
    time.fill("Uhrzeit")
    form.get_by_label("Column of the date").fill("Datum")
    form.get_by_label("Column of the alarm code").fill("Meldung")
    form.get_by_label("Column of the serial").fill("Anlage")
    form.get_by_label("Time format").fill("%d.%m.%Y %H:%M:%S")
    form.get_by_label("Encoding").fill("cp1252")
    form.get_by_label("Code map").set_input_files(codes)
    form.get_by_role("button", name="Preview history").click()
    serial = form.get_by_label("Only rows of serial")
    expect(serial).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".q-loading-bar")).to_have_attribute("aria-hidden", "true")
    assert broken(page) == []
    serial.select_option("B")
    form.get_by_role("button", name="Preview history").click()
    preview = form.get_by_role("region", name="Preview of meldungen.csv")
    expect(preview).to_contain_text("3 alarms from")
    expect(preview.get_by_role("row").nth(1)).to_contain_text("1 Tür 1 offen")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    form.get_by_role("button", name="Enrol and import history").click()
    expect(form.get_by_text("3 rows: 3 imported, none rejected.")).to_be_visible()
    assert sorted(alarm.code for alarm in plant.api.machines.alarms("padova/columns")) == [1, 3, 5]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "nothing.csv is empty; choose a file with a row for every alarm."),
        (b"PK\x03\x04\x00\x00", "it is a ZIP archive or an Excel workbook; save its rows as CSV."),
    ],
)
def test_a_file_that_is_no_history_is_refused_before_the_machine_is_enrolled(
    tabs: Tabs, plant: Plant, tmp_path: Path, content: bytes, words: str
) -> None:
    log = tmp_path / "nothing.csv"
    log.write_bytes(content)
    page = tabs("/learning?site=padova&machine=none")
    form = form_of(page)
    form.get_by_label("Alarm history file").set_input_files(log)
    form.get_by_role("button", name="Preview history").click()
    expect(form.get_by_role("alert")).to_contain_text(words)
    expect(form.get_by_role("button", name="Preview history")).to_be_visible()
    assert "none" not in [one.machine for one in plant.api.machines.list().machines]


def test_a_wrong_machine_id_is_shown_at_its_field(tabs: Tabs, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(f"{AT:%Y-%m-%d %H:%M:%S},5,1\n")
    form = form_of(tabs("/learning?site=padova"))
    form.get_by_label("Alarm history file").set_input_files(log)
    form.get_by_role("button", name="Preview history").click()
    expect(form.get_by_label("Machine ID")).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_label("Machine ID")).to_be_focused()
    tabs.complaints.clear()  # Chromium notes every refusal in its console
