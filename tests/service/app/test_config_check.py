"""The service's doctor: what would not work is said in words, against real brokers, databases and certificates."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from service.app.config_check import examine, shown_url
from service.app.configuration import configuration
from service.app.service import Service
from service.app.stores import open_stores
from service.database import schema
from service.database.backup import RESTORE_MARKER
from service.database.engine import Database
from service.errors import InputRejected
from service.machines.catalogue import CatalogueEntry
from tests.conftest import Mosquitto, free_port
from tests.service.conftest import NOW, small_model
from tests.support.sample_database import next_schema
from tests.support.secured_broker import GuardedMosquitto
from tests.system.conftest import clean_environment
from wire.broker_check import Finding


def findings(tmp_path: Path, **more: object) -> dict[str, Finding]:
    flags = {"data_dir": tmp_path / "data", "port": 0, "broker_host": "broker.invalid"} | more
    return {finding.check: finding for finding in examine(configuration(**flags))}


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    found = findings(tmp_path)
    assert (found["data folder"].ok, found["database"].ok) == (True, True)
    assert "will be made" in found["database"].message
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = findings(tmp_path, data_dir=tmp_path / "file" / "data")["data folder"]
    assert found.ok is False
    assert "--data-dir" in found.message


def test_the_schema_of_a_database_is_told_without_changing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_stores(configuration(data_dir=tmp_path / "data").settings):
        pass
    assert "the one of this version" in findings(tmp_path)["database"].message
    database = Database(f"sqlite:///{tmp_path / 'data' / 'alarmcast.sqlite3'}")
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9000'")
    found = findings(tmp_path)["database"]
    assert (found.ok, "newer version" in found.message) == (False, True), found
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    database.close()
    monkeypatch.setattr(schema, "SCRIPTS", next_schema(tmp_path))
    found = findings(tmp_path)["database"]
    assert (found.ok, "will be upgraded to" in found.message) == (None, True), found


def test_a_catalogue_with_too_many_targets_for_a_message_is_told(tmp_path: Path) -> None:
    codes = [CatalogueEntry(code, "Position not reached in time", "medium", target=True) for code in range(500)]
    with open_stores(configuration(data_dir=tmp_path / "data").settings) as stores:
        stores.catalogue.merge(codes[:100])
    assert "catalogue" not in findings(tmp_path)
    with open_stores(configuration(data_dir=tmp_path / "data").settings) as stores:
        stores.catalogue.merge(codes[100:])
    found = findings(tmp_path)["catalogue"]
    assert (found.ok, "mark fewer codes" in found.message) == (None, True)


def test_windows_of_other_lengths_than_the_models_are_refused(tmp_path: Path) -> None:
    with open_stores(configuration(data_dir=tmp_path / "data").settings) as stores:
        assert "windows" not in findings(tmp_path, horizon_minutes=60)
        stores.versions.add_and_promote(small_model(), report={"summary": "small"}, at=NOW)
        service = Service(configuration(data_dir=tmp_path / "data", horizon_minutes=60).settings, stores)
        warning = service.health().warnings["windows"]
        with socket.socket() as listener, pytest.raises(InputRejected, match="was learned with 1720 and 480"):
            service.run(listener)
    assert "windows" not in findings(tmp_path)
    for field in ("horizon_minutes", "lookback_minutes"):
        assert findings(tmp_path, **{field: 60})["windows"].ok is False
    found = findings(tmp_path, horizon_minutes=60)["windows"]
    assert found.message == warning
    assert "horizon_minutes 60, but v1 was learned with 1720 and 480" in found.message
    assert "Set ALARMCAST_LOOKBACK_MINUTES=1720 and ALARMCAST_HORIZON_MINUTES=480 again" in found.message


def test_a_restore_that_was_interrupted_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / RESTORE_MARKER).write_text('{"aside": null}', encoding="utf-8")
    assert "the next start finishes it" in findings(tmp_path)["restore"].message


def test_a_file_that_is_no_database_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "alarmcast.sqlite3").write_bytes(b"rubbish" * 1000)
    found = findings(tmp_path)["database"]
    assert found.ok is False
    assert "damaged" in found.message


def test_a_database_that_does_not_answer_is_wrong_and_its_password_is_not_told(tmp_path: Path) -> None:
    url = f"postgresql+psycopg://anna:hush@127.0.0.1:{free_port()}/plant?password=hush"
    found = findings(tmp_path, database_url=url)["database"]
    assert found.ok is False
    assert "anna:***@127.0.0.1" in found.message
    assert "hush" not in found.message


def test_an_empty_postgresql_is_well(tmp_path: Path, postgresql: str) -> None:
    database = Database(postgresql)
    with database.write() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    found = findings(tmp_path, database_url=postgresql)["database"]
    assert (found.ok, "is empty" in found.message) == (True, True), found
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (id INTEGER)")
    found = findings(tmp_path, database_url=postgresql)["database"]
    assert (found.ok, "not Alarmcast's" in found.message) == (False, True), found
    with database.write() as connection:
        connection.exec_driver_sql("DROP TABLE orders")
    database.close()


def test_a_port_that_is_taken_is_wrong_unless_it_is_ours(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = findings(tmp_path, port=port)["API"]
        assert found.ok is False
        assert "--port" in found.message
        with open_stores(configuration(data_dir=tmp_path / "data").settings) as stores:
            stores.lock.write_address(f"http://127.0.0.1:{port}")
            ours = findings(tmp_path, port=port)
        assert ours["API"].ok is True
        assert ours["writer"].ok is None


def test_an_address_beyond_this_computer_is_doubtful(tmp_path: Path) -> None:
    assert findings(tmp_path)["API"].ok is True
    assert findings(tmp_path, host="0.0.0.0")["API"].ok is None  # noqa: S104
    assert findings(tmp_path, host="no.such.host.invalid")["API"].ok is False


def test_what_serve_refuses_beyond_this_computer_is_wrong(tmp_path: Path, mosquitto: Mosquitto) -> None:
    there = {"broker_host": "127.0.0.1", "broker_port": mosquitto.port}
    assert not findings(tmp_path, **there).keys() & {"encryption", "guard"}
    for mode, why in (("auto", "no dynamic-security plugin"), ("off", "broker_dynamic_security is off")):
        beyond = there | {"host": "0.0.0.0", "broker_dynamic_security": mode}  # noqa: S104
        found = findings(tmp_path, **beyond)
        assert (found["encryption"].ok, found["guard"].ok) == (False, False)
        assert "ALARMCAST_ALLOW_PLAIN_HTTP=true" in found["encryption"].message
        assert why in found["guard"].message
        assert "ALARMCAST_ALLOW_OPEN_BROKER=true" in found["guard"].message
        told = findings(tmp_path, **beyond, allow_plain_http=True, allow_open_broker=True)
        assert not told.keys() & {"encryption", "guard"}


def test_a_guarded_broker_may_be_stood_before_beyond_this_computer(
    tmp_path: Path, guarded: GuardedMosquitto
) -> None:
    told = {"broker_username": guarded.address.username, "broker_password": guarded.password()}
    there = {"host": "0.0.0.0", "broker_host": "127.0.0.1", "broker_port": guarded.port}  # noqa: S104
    found = findings(tmp_path, **there, **told)
    assert "guard" not in found, found["guard"]
    assert found["credentials"].ok is True
    refused = findings(tmp_path, **there)["guard"]
    assert "it is unknown whether the broker is secured" in refused.message


def test_clocks_that_cannot_be_are_wrong(tmp_path: Path) -> None:
    assert findings(tmp_path)["clock"].ok is True
    fast = {"clock_wall_origin": "2026-01-01T00:00:00Z", "clock_plant_origin": "2026-01-01T00:00:00Z"}
    assert findings(tmp_path, **fast, clock_speed=2)["clock"].ok is None
    assert findings(tmp_path, **fast, clock_speed=100_000)["clock"].ok is False


def test_a_broker_is_examined_from_its_name_to_its_credentials(tmp_path: Path, mosquitto: Mosquitto) -> None:
    assert findings(tmp_path)["name"].ok is False
    assert findings(tmp_path, broker_host="127.0.0.1", broker_port=free_port())["network"].ok is False
    there = {"broker_host": "127.0.0.1", "broker_port": mosquitto.port}
    found = findings(tmp_path, **there)
    assert found["credentials"].ok is True, found
    assert findings(tmp_path, **there, broker_mqtt_version="3.1.1")["credentials"].ok is True
    assert "TLS port" in findings(tmp_path, **there, broker_tls=True)["TLS"].message
    mosquitto.kill()
    mosquitto.anonymous = False
    mosquitto.start()
    refused = findings(tmp_path, **there, broker_username="anna", broker_password="hush")["credentials"]  # noqa: S106
    assert refused.ok is False
    assert "ALARMCAST_BROKER_PASSWORD" in refused.message
    assert "hush" not in refused.message


def test_an_authority_that_is_no_certificate_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("rubbish")
    assert findings(tmp_path, broker_tls_ca=tmp_path / "ca.pem")["TLS files"].ok is False
    assert findings(tmp_path, broker_tls_ca=tmp_path / "none.pem")["TLS files"].ok is False


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////data/a.sqlite3", "sqlite:////data/a.sqlite3"),
        (
            "postgresql+psycopg://anna:hush@db:5432/plant?password=hush",
            "postgresql+psycopg://anna:***@db:5432/plant",
        ),
        ("postgresql+psycopg://db/plant", "postgresql+psycopg://db/plant"),
        ("postgresql+psycopg:///plant?host=/run&password=hush", "postgresql+psycopg:///plant"),
    ],
)
def test_of_a_databases_address_no_secret_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("hush\n")
    file.chmod(0o644)
    return file


def config(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "service", "config", *(str(part) for part in arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=clean_environment() | environment, check=False
    )


def test_the_command_shows_every_value_where_it_came_from_and_what_is_wrong(tmp_path: Path, secret: Path) -> None:
    done = config(
        *("check", "--data-dir", tmp_path / "data", "--port", 0),
        ALARMCAST_BROKER_PASSWORD_FILE=str(secret),
        ALARMCAST_BROKER_HOST="broker.invalid",
    )
    assert (done.returncode, done.stderr) == (1, "")
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert ["broker_password", "***", f"file, {secret}"] in lines
    assert ["broker_host", "broker.invalid", "environment, ALARMCAST_BROKER_HOST"] in lines
    assert ["clock_speed", "1.0", "default"] in lines
    assert "FAIL  name:" in done.stdout
    assert "WARN  secret:" in done.stdout
    assert "hush" not in done.stdout


def test_the_command_is_content_where_everything_works(tmp_path: Path, mosquitto: Mosquitto) -> None:
    done = config("check", "--data-dir", tmp_path / "data", "--port", 0, "--broker-port", mosquitto.port)
    assert done.returncode == 0, done.stdout
    assert "FAIL" not in done.stdout


def test_the_command_refuses_what_serve_refuses(tmp_path: Path) -> None:
    exposed = {"ALARMCAST_HOST": "0.0.0.0", "ALARMCAST_BROKER_DYNAMIC_SECURITY": "off"}  # noqa: S104
    checked = config("check", "--data-dir", tmp_path / "data", "--port", 0, **exposed)
    assert checked.returncode == 1
    serve = [sys.executable, "-m", "service", "serve", "--data-dir", str(tmp_path / "data"), "--port", "0"]
    for check, more in (("encryption", {}), ("guard", {"ALARMCAST_ALLOW_PLAIN_HTTP": "true"})):
        environment = clean_environment() | exposed | more
        served = subprocess.run(serve, capture_output=True, text=True, env=environment, check=False)
        assert served.returncode != 0
        (line,) = [line for line in checked.stdout.splitlines() if line.startswith(f"FAIL  {check}: ")]
        assert line.partition(": ")[2] in served.stderr


def test_a_wrong_setting_ends_the_check_with_its_sentence() -> None:
    done = config("check", ALARMCAST_PORT="many")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("FAIL  configuration: The setting port (ALARMCAST_PORT) is wrong:")


def test_programs_can_read_the_settings_without_the_secrets(secret: Path) -> None:
    url = "postgresql+psycopg://anna:hush@db/plant"
    done = config("show", "--json", ALARMCAST_BROKER_PASSWORD_FILE=str(secret), ALARMCAST_DATABASE_URL=url)
    assert done.returncode == 0
    shown = json.loads(done.stdout)
    assert shown["port"] == {"value": 8080, "from": "default", "variable": "ALARMCAST_PORT"}
    assert shown["broker_password"]["value"] == "***"
    assert shown["database_url"]["value"] == "postgresql+psycopg://anna:***@db/plant"
    assert "hush" not in done.stdout
