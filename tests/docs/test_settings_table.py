"""The table of settings says what the settings are."""

import edge_agent.settings
import service.settings
from tests.docs.settings_table import FILE, table


def test_the_table_is_what_the_settings_say() -> None:
    assert FILE.read_text(encoding="utf-8") == table(), "run scripts/settings"


def test_every_setting_is_described_in_a_sentence() -> None:
    for kind in (service.settings.Settings, edge_agent.settings.Settings):
        for name, field in kind.model_fields.items():
            assert field.description, name
            assert field.description.endswith((".", "…")), name


def test_whatever_sounds_like_a_secret_is_one() -> None:
    words = ("password", "secret", "token", "database_url")
    for module in (service.settings, edge_agent.settings):
        sounding = {name for name in module.Settings.model_fields if any(word in name for word in words)}
        assert sounding <= set(module.secret_names())
