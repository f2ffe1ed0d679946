"""A parcel in a file: how the process that trained hands over to the one that may write.

One line of JSON in which a place stands for each of its bytes, and then these, end to end.
"""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from service.errors import TrainingFailed
from service.http.message import Sentence
from service.learning.candidate import Candidate, RetainedSamples
from service.learning.candidate_store import CandidateRows

MOST_BYTES: Final = 512 << 20  # of a parcel; the serving process reads it whole
_SENTENCES: Final = ("reasons", "undecided", "notes")
_PLACE: Final = "bytes"  # the only key of what stands for them; no row has a single cell


def write(candidate: Candidate, file: Path) -> None:
    """Pack and write a candidate; its weights are in their own file already."""
    body: list[bytes] = []
    parcel = vars(CandidateRows.from_candidate(candidate))
    kept = {name: [one.replayed.tolist(), one.held_out.tolist()] for name, one in candidate.kept.items()}
    sentences = {name: [one.as_json() for one in parcel[name]] for name in _SENTENCES}
    told = _extract_bytes(parcel | {"kept": kept} | sentences, body)
    head = json.dumps({"size": sum(map(len, body)), "parcel": told}).encode() + b"\n"
    _insist_on_room(len(head) + sum(map(len, body)))
    with file.open("wb") as opened:
        opened.write(head)
        opened.writelines(body)


def read(file: Path) -> CandidateRows:
    """Read what was handed over."""
    try:
        _insist_on_room(file.stat().st_size)
        with file.open("rb") as opened:
            head = json.loads(opened.readline())
            body = opened.read()
        told, size = head["parcel"], head["size"]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise TrainingFailed(f"What the training process left cannot be read: {error}.") from None
    if len(body) != size:
        raise TrainingFailed(f"What the training process left cannot be read: {len(body)} of {size} bytes.")
    parcel = _restore_bytes(told, body)
    moments = {name: [np.array(one, dtype=np.int64) for one in both] for name, both in parcel["kept"].items()}
    return CandidateRows(
        **parcel
        | {"kept": {name: RetainedSamples(*both) for name, both in moments.items()}}
        | {"targets": tuple(parcel["targets"])}
        | {name: tuple(map(Sentence.from_json, parcel[name])) for name in _SENTENCES}
    )


def _insist_on_room(size: int) -> None:
    """Refuse what the serving process could hold only at the price of everything else."""
    if size > MOST_BYTES:
        raise TrainingFailed(
            f"The training process made {size >> 20} MB to be stored, and {MOST_BYTES >> 20} MB are allowed. "
            "Lower ALARMCAST_MAX_CODES_PER_MACHINE or ALARMCAST_MEMORY_WINDOWS."
        )


def _extract_bytes(value: Any, body: list[bytes]) -> Any:
    """Return a value as JSON can hold it, and put its bytes into ``body``."""
    if isinstance(value, bytes):
        body.append(value)
        return {_PLACE: len(value)}
    if isinstance(value, dict):
        return {name: _extract_bytes(one, body) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_extract_bytes(one, body) for one in value]
    return value


def _restore_bytes(told: Any, body: bytes) -> Any:
    """Return a value with its bytes, which come in the order in which they were set apart."""
    place = 0

    def put(value: Any) -> Any:
        nonlocal place
        if isinstance(value, dict):
            if value.keys() == {_PLACE}:
                place += value[_PLACE]
                return body[place - value[_PLACE] : place]
            return {name: put(one) for name, one in value.items()}
        return [put(one) for one in value] if isinstance(value, list) else value

    return put(told)
