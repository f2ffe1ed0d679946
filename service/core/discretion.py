"""What people of some sites read of a text or a report that is about the whole fleet."""

import re
from typing import Any

from service.core.principal import Sites

_ID = "[a-z0-9][a-z0-9_-]{0,62}"
_NAME = re.compile(rf"(?<![\w/.-])({_ID})/({_ID})(?![\w/])")
# The gate's sentences begin with the machine that they are about: there a name is one, whatever it is made of.
_SUBJECT = re.compile(rf"(?:(?<=^)|(?<=[.;] ))({_ID})/({_ID})(?=: | has )", re.MULTILINE)
_LETTER = re.compile("[a-z]")
SOMEBODY = "another site's machine"


def is_foreign(name: str, sites: Sites) -> bool:
    """Say whether a name is that of a machine of a site other than these."""
    found = _NAME.fullmatch(name)
    return sites is not None and found is not None and found[1] not in sites


def discreet_text(text: str, sites: Sites) -> str:
    """Return a text in which machines of other sites have no name."""
    if sites is None:
        return text

    def hide_subject(found: re.Match[str]) -> str:
        return found[0] if found[1] in sites else SOMEBODY

    def hide(found: re.Match[str]) -> str:
        is_name = _LETTER.search(found[1]) is not None  # 3/4 is a fraction
        return SOMEBODY if is_name and found[1] not in sites else found[0]

    return _NAME.sub(hide, _SUBJECT.sub(hide_subject, text))


def discreet(told: Any, sites: Sites) -> Any:
    """Return a report without what it says under the names of other sites' machines."""
    if sites is None:
        return told
    if isinstance(told, str):  # a field that holds nothing but a name is a machine's, digits or not
        return SOMEBODY if is_foreign(told, sites) else discreet_text(told, sites)
    if isinstance(told, dict):
        return {name: discreet(value, sites) for name, value in told.items() if not is_foreign(str(name), sites)}
    if isinstance(told, list | tuple):
        return [
            discreet(value, sites) for value in told if not (isinstance(value, str) and is_foreign(value, sites))
        ]
    return told
