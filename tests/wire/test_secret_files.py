"""Secrets from files: one line, readable by few, and never beside the secret itself."""

from pathlib import Path

import pytest

from wire.secret_files import SecretFile, SecretRejected, read_secret, take_secrets


def held(tmp_path: Path, body: bytes, mode: int = 0o600) -> Path:
    file = tmp_path / "secret"
    file.write_bytes(body)
    file.chmod(mode)
    return file


@pytest.mark.parametrize("body", [b"hush", b"hush\n", b"hush\r\n"])
def test_a_line_end_is_not_a_part_of_the_secret(tmp_path: Path, body: bytes) -> None:
    assert read_secret(held(tmp_path, body), "X_FILE").value == "hush"


def test_spaces_are_a_part_of_the_secret(tmp_path: Path) -> None:
    assert read_secret(held(tmp_path, b" hu sh \n"), "X_FILE").value == " hu sh "


@pytest.mark.parametrize("body", [b"", b"\n", b"one\ntwo\n", b"\xff\xfe", b"a\0b", b"x" * 70_000])
def test_what_cannot_be_a_secret_is_refused_with_the_name_of_its_setting(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(SecretRejected, match=r"X_FILE names .*secret"):
        read_secret(held(tmp_path, body), "X_FILE")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SecretRejected, match=r"X_FILE names .*none, which cannot be read: No such file"):
        read_secret(tmp_path / "none", "X_FILE")


@pytest.mark.parametrize(
    ("mode", "warned"), [(0o600, False), (0o640, False), (0o400, False), (0o644, True), (0o660, True)]
)
def test_a_file_that_others_can_read_or_change_is_taken_with_a_warning(
    tmp_path: Path,
    mode: int,
    warned: bool,  # noqa: FBT001
) -> None:
    found = read_secret(held(tmp_path, b"hush", mode), "X_FILE")
    assert (found.warning is not None) == warned
    if found.warning:
        assert f"{mode:04o}" in found.warning
        assert "chmod 600" in found.warning
        assert "hush" not in found.warning


def test_a_secret_and_its_file_together_are_refused_as_they_were_spelled(tmp_path: Path) -> None:
    given = {"password": "hush", "password_file": str(held(tmp_path, b"hush"))}
    with pytest.raises(SecretRejected, match="PASSWORD and PASSWORD_FILE are both given"):
        take_secrets(given, ["password"], {name: name.upper() for name in given})


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    found: SecretFile = read_secret(held(tmp_path, b"hush"), "X_FILE")
    assert "hush" not in repr(found)
    assert "hush" not in str(found)
