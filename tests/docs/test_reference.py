"""The reference pages agree with the code."""

import pytest

import edge_agent.settings
import service.settings
from tests.docs.reference import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_reference_page_agrees_with_the_code(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run scripts/reference"


def test_every_setting_has_a_description() -> None:
    for kind in (service.settings.Settings, edge_agent.settings.Settings):
        for name, field in kind.model_fields.items():
            assert field.description, name
            assert field.description.endswith((".", "…")), name


def test_setting_named_like_a_secret_is_a_secret() -> None:
    words = ("password", "secret", "token", "database_url")
    for module in (service.settings, edge_agent.settings):
        sounding = {name for name in module.Settings.model_fields if any(word in name for word in words)}
        assert sounding <= set(module.secret_names())
