"""The texts of the page, by key, from one JSON file for each page: a language is a folder of such files."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Final

LANGUAGE: Final = "en"
SCRIPT: Final = "/static/texts.js"
_FOLDER = Path(__file__).parent


@cache
def texts(language: str = LANGUAGE) -> dict[str, str]:
    """Return all texts of a language; ``fleet.title`` stands in ``fleet.json`` as ``title``."""
    found: dict[str, str] = {}
    for file in sorted((_FOLDER / language).glob("*.json")):
        found |= {f"{file.stem}.{key}": value for key, value in json.loads(file.read_text("utf-8")).items()}
    return found


@cache
def script() -> str:
    """Return the script that gives the texts to the page's components."""
    return f"window.alarmcastTexts = {json.dumps(texts())};"


@cache
def script_url() -> str:
    """Return where the script is served; another content has another URL, so that browsers may cache it."""
    return f"{SCRIPT}?v={hashlib.sha256(script().encode()).hexdigest()[:12]}"


def text(key: str, **values: object) -> str:
    """Return a text with its values filled in as ``str.format`` does; a missing key is a KeyError.

    With ``count`` the key ``<key>.one`` is taken for one, if there is such a text.
    """
    if values.get("count") == 1 and f"{key}.one" in texts():
        key = f"{key}.one"
    return texts()[key].format_map(values)
