"""Messages gone wrong: good ones changed in their structure, then in their bytes, all from one seeded dice."""

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

NOW = "2026-11-16T08:07:00Z"
MOMENTS = (
    NOW,
    "2026-11-16T08:07:00.123456+02:00",
    "2026-11-16T00:00:00",
    "2026-11-17T00:00:00Z",
    "2020-01-01T00:00:00Z",
    "1999-12-31T23:59:59.999999Z",
    "2099-12-31T23:59:59.999999Z",
    "2100-01-01T00:00:00Z",
    "9999-12-31T23:59:59-12:00",
    "2026-02-30T00:00:00Z",
    "2026-11-16T24:00:00Z",
    "2026-W47-1",
    "20261116T080700Z",
    "-2026-11-16T08:07:00Z",
    "1700000000",
    "1700000000000",
    "now",
)
VALUES: tuple[Any, ...] = (
    *MOMENTS,
    None,
    True,
    False,
    0,
    -1,
    1,
    1.0,
    1.5,
    -0.0,
    7,
    2**31 - 1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    10**25,
    1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "1",
    "\0",
    "\ud800",
    "\u2028é😀",
    "é" * 20_000,
    "x" * 66_000,
    "<script>alert(1)</script>",
    "'; DROP TABLE events; --",
    "spool_full",
    [],
    {},
    [[[[]]]],
    [1, 2],
    [9, 7],
    [1, 2**63 - 1],
    [1e15] * 3000,
)
TOKENS = (
    *(
        b"\0",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b'"',
        b"\\",
        b"\\u0000",
        b"\\ud800",
    ),
    *(b"{", b"}", b"[", b"]", b",", b":", b"NaN", b"Infinity", b"-", b"1e999", b"9" * 30, b"9" * 5000, b"null"),
    *(b"[" * 2000, b'{"a":' * 2000, b"true", b'"seq":', b'"events":[', b'"gaps":[', b'"epoch":'),
)


def mutated_value(dice: Random, value: Any) -> Any:
    """Return a copy of a JSON value with one thing in it changed, left out, doubled, renamed or wrapped."""
    changed = {"": deepcopy(value)}
    holder: Any = changed
    key: Any = ""
    while isinstance(holder[key], dict | list) and holder[key] and dice.random() < 0.8:
        holder = holder[key]
        key = dice.choice(list(holder)) if isinstance(holder, dict) else dice.randrange(len(holder))
    dice.choice(_CHANGES)(dice, holder, key)
    return changed.get("")


def _replace(dice: Random, holder: Any, key: Any) -> None:
    holder[key] = dice.choice(VALUES)


def _remove(_dice: Random, holder: Any, key: Any) -> None:
    del holder[key]


def _wrap(dice: Random, holder: Any, key: Any) -> None:
    holder[key] = [holder[key]] if dice.random() < 0.5 else {"value": holder[key]}


def _spell(_dice: Random, holder: Any, key: Any) -> None:
    holder[key] = str(holder[key])


def _double(dice: Random, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.insert(dice.randrange(len(holder) + 1), deepcopy(holder[key]))
    else:
        holder[dice.choice(("seq", "code", "at", "seqs", "events", "gaps", "epoch", "more"))] = holder[key]


def _many(dice: Random, holder: Any, key: Any) -> None:
    if isinstance(holder[key], list) and holder[key]:
        holder[key] = [deepcopy(dice.choice(holder[key])) for _ in range(dice.choice((2, 50, 500, 501, 700)))]
    else:
        _replace(dice, holder, key)


def _nudge(dice: Random, holder: Any, key: Any) -> None:
    if isinstance(holder[key], int) and not isinstance(holder[key], bool):
        holder[key] += dice.choice((-1, 1, 2**31, 2**63, -(2**63)))
    else:
        _replace(dice, holder, key)


_CHANGES: tuple[Callable[[Random, Any, Any], None], ...] = (
    *(_replace, _replace, _replace),
    *(_remove, _wrap, _spell, _double, _many, _nudge),
)


def mutated_bytes(dice: Random, body: bytes, other: bytes = b"") -> bytes:
    """Return bytes with a few places flipped, cut, doubled, overwritten, or spliced with another message."""
    changed = bytearray(body)
    for _ in range(dice.choice((1, 1, 1, 2, 4, 16))):
        place = dice.randrange(len(changed) + 1)
        end = min(len(changed), place + dice.choice((1, 1, 2, 8, 64, 4096)))
        kind = dice.randrange(7)
        if kind == 0 and place < len(changed):
            changed[place] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del changed[place:end]
        elif kind == 2:
            changed[place:place] = changed[place:end]
        elif kind == 3:
            changed[place:end] = dice.choice(TOKENS)
        elif kind == 4:
            changed[place:place] = dice.choice(TOKENS)
        elif kind == 5:
            del changed[place:]
        elif kind == 6 and other:
            start = dice.randrange(len(other))
            changed[place:end] = other[start : start + dice.choice((1, 16, 256))]
    return bytes(changed)


def written(dice: Random, value: Any) -> bytes:
    """Write a JSON value as sloppily as some agent might."""
    ascii_only = dice.random() < 0.5
    try:
        return json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    except RecursionError:
        return b"[" * 5000
