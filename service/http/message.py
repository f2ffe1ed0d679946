"""Messages about machines: each sentence holds its machine as a field, and the text is composed for its reader.

A reader of some sites gets "another machine" for every machine of the other sites, whatever its name looks like.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from service.http.principal import Sites

MACHINE: Final = "{machine}"  # stands in the text of a sentence for its machine
ANOTHER: Final = "another machine"
WITHHELD: Final = "The details may name machines of other sites. Ask a user of all sites."


def is_visible(machine: str, sites: Sites) -> bool:
    """Say whether a machine, written as ``site/name``, belongs to one of these sites."""
    return sites is None or machine.partition("/")[0] in sites


@dataclass(frozen=True)
class Sentence:
    """One sentence; ``MACHINE`` in the text stands for ``machine``.

    A ``restricted`` one may name any machine in its text, so only people of all sites read it.
    """

    text: str
    machine: str | None = None
    restricted: bool = False

    def __str__(self) -> str:
        return self.text if self.machine is None else self.text.replace(MACHINE, self.machine)

    def text_for(self, sites: Sites) -> str:
        """Return what people of these sites may read of it."""
        if self.restricted and sites is not None:
            return WITHHELD
        if self.machine is None or is_visible(self.machine, sites):
            return str(self)
        return self.text.replace(MACHINE, ANOTHER)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        fields: dict[str, Any] = {"text": self.text, "machine": self.machine}
        return fields | {"restricted": True} if self.restricted else fields

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """Read a stored sentence; a plain text of an earlier version may name any machine, so it is restricted."""
        if isinstance(stored, dict):
            return cls(stored["text"], stored.get("machine"), bool(stored.get("restricted")))
        return cls(str(stored), restricted=True)


@dataclass(frozen=True)
class Message:
    """Sentences in order, as a job or a machine shows them."""

    sentences: tuple[Sentence, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.sentences))

    @classmethod
    def of(cls, *sentences: str | Sentence) -> Self:
        """Return a message; a sentence given as text names no machine but the one that shows the message."""
        return cls(tuple(Sentence(one) if isinstance(one, str) else one for one in sentences))

    def shown_to(self, sites: Sites) -> Self:
        """Return the message as people of these sites may read it."""
        return replace(self, sentences=tuple(Sentence(text) for text in texts_for(self.sentences, sites)))

    def encoded(self) -> str:
        """Return the text under which it is stored."""
        return json.dumps([one.as_json() for one in self.sentences])


def texts_for(sentences: Iterable[Sentence], sites: Sites) -> list[str]:
    """Return what people of these sites may read of some sentences, each text once."""
    return list(dict.fromkeys(one.text_for(sites) for one in sentences))


def decoded(stored: str | None) -> Message | None:
    """Read a stored message. One of an earlier version is a plain text, and none of those began with a bracket."""
    if stored is None:
        return None
    sentences = json.loads(stored) if stored.startswith("[") else [stored]
    return Message(tuple(map(Sentence.from_json, sentences)))
