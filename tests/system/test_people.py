"""People and keys of a real service: the first start, the commands, and who is kept out."""

import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from alarmcast import Client, Forbidden, NotSignedIn
from service.app.configuration import load_settings
from service.app.http_server import require_tls
from service.errors import InputRejected
from tests.conftest import free_port
from tests.system.conftest import Plant, clean_environment

PASSWORD = "four unrelated plain words"  # noqa: S105


def told(pattern: str, words: str) -> str:
    found = re.search(pattern, words)
    assert found, words
    return found[1]


def test_the_first_start_tells_an_admins_password_once_and_it_must_be_changed(plant: Plant) -> None:
    plant.start_service()
    file = plant.data / "first-password.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    password = file.read_text().strip()
    assert password not in plant.service.words(), "logs are kept, and passwords must not be in them"
    with Client(plant.address) as browser:
        assert browser.session.login("admin", password).must_change
        with pytest.raises(Forbidden, match="must be changed first"):
            browser.fleet.overview()
        browser.session.change_password(password, PASSWORD)
        assert browser.users.list().users[0].name == "admin"
    plant.service.kill()
    plant.start_service()
    assert plant.service.words().count("one-time password") == 1
    with Client(plant.address) as browser:
        browser.session.login("admin", PASSWORD)


def test_the_local_key_is_readable_by_its_owner_alone_and_new_at_each_start(plant: Plant) -> None:
    plant.start_service()
    first = plant.key
    assert stat.S_IMODE(plant.key_file.stat().st_mode) == 0o600
    plant.service.kill()
    plant.start_service()
    assert plant.key != first
    with Client(plant.address, key=first) as late, pytest.raises(NotSignedIn):
        late.fleet.overview()
    plant.service.stop()
    assert not plant.key_file.exists()


def test_users_and_keys_are_made_changed_and_removed_by_command(plant: Plant) -> None:
    plant.start_service()
    made = plant.admin("user", "add", "maria", "--role", "operator", "--site", "padova", "--site", "lyon")
    assert "maria is operator of lyon, padova." in made.stdout
    password = told(r"shown this once: (\S+)", made.stdout)
    assert plant.admin("user", "role", "maria", "viewer").stdout == "maria is viewer of lyon, padova.\n"
    assert (
        plant.admin("user", "role", "maria", "admin", "--everywhere").stdout == "maria is admin of every site.\n"
    )
    listed = plant.admin("user", "list").stdout
    assert "maria" in listed
    assert "temporary" in listed
    again = told(r"shown this once: (\S+)", plant.admin("user", "password", "maria").stdout)
    with Client(plant.address) as browser:
        with pytest.raises(NotSignedIn):
            browser.session.login("maria", password)
        browser.session.login("maria", again)
    assert plant.admin("user", "remove", "maria").returncode == 0
    assert "There is no user maria." in plant.admin("user", "remove", "maria").stderr
    key = plant.admin("key", "add", "andon", "--role", "viewer", "--site", "padova", "--days", "30")
    with Client(plant.address, key=key.stdout.strip()) as board:
        assert (board.session.me().name, board.session.me().sites) == ("key andon", ["padova"])
        assert "andon" in plant.admin("key", "list").stdout
        assert key.stdout.strip() not in plant.admin("key", "list").stdout
        assert plant.admin("key", "revoke", "1", "--reason", "lost").stdout == "Key 1 is revoked.\n"
        with pytest.raises(NotSignedIn):
            board.session.me()


def test_commands_work_before_there_is_a_service_and_from_elsewhere_with_a_key(
    plant: Plant, tmp_path: Path
) -> None:
    key = plant.admin("key", "add", "afar", "--role", "admin").stdout.strip()
    plant.start_service()
    away = clean_environment() | {"ALARMCAST_URL": plant.address}
    command = [
        sys.executable,
        "-m",
        "service",
        "admin",
        "machine",
        "list",
        "--data-dir",
        str(tmp_path / "nothing"),
    ]

    def ask(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert ask(away | {"ALARMCAST_KEY": key}).returncode == 0
    file = tmp_path / "key"
    file.write_text(f"{key}\n")
    file.chmod(0o600)
    assert ask(away | {"ALARMCAST_KEY_FILE": str(file)}).returncode == 0
    both = ask(away | {"ALARMCAST_KEY": key, "ALARMCAST_KEY_FILE": str(file)})
    assert (both.returncode, "both given" in both.stderr) == (2, True)
    wrong = ask(away | {"ALARMCAST_KEY": "ack_0_0"})
    assert (wrong.returncode, "invalid or expired" in wrong.stderr) == (2, True)
    without = ask(away)
    assert (without.returncode, "give an API key" in without.stderr) == (2, True)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "plant.example"])  # noqa: S104
def test_without_tls_the_service_listens_beyond_loopback_only_if_told(host: str) -> None:
    with pytest.raises(InputRejected, match=r"unencrypted.*ALARMCAST_ALLOW_PLAIN_HTTP=true"):
        require_tls(load_settings(host=host))
    require_tls(load_settings(host=host, allow_plain_http=True))
    for near in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        require_tls(load_settings(host=near))


def test_a_service_that_would_be_overheard_does_not_start(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "service", "serve", "--host", "0.0.0.0", "--port", str(free_port())]  # noqa: S104
    command += ["--data-dir", str(tmp_path / "data")]
    done = subprocess.run(
        command, capture_output=True, text=True, env=clean_environment(), check=False, timeout=60
    )
    assert done.returncode == 2
    assert "would cross the network unencrypted" in done.stderr
    assert not (tmp_path / "data").exists()
