"""Figures the simulated fleet is calibrated to, aggregated from published statistics.

They describe "Alarm Logs in Packaging Industry (ALPI)" by Tosato, Dalle Pezze, Masiero, Susto and Beghi,
CC BY 4.0. Only tendencies live here (shares, lifts, habits of twenty machines); no recorded alarm does.
"""

from typing import NamedTuple

CODES = range(154)

# Percent of a machine's alarms, by the kind of machine. Codes 137 and 139 belong to equipment that a line
# either has or has not, so kinds differ far more than machines of one kind do.
_STRAW = {137: 46.5, 26: 17.5, 29: 9.5, 31: 4.3, 98: 2.8, 45: 1.8, 21: 1.7, 32: 1.6, 138: 1.5, 46: 1.2}
_CAP = {139: 60.0, 29: 9.5, 26: 10.0, 98: 6.5, 31: 4.2, 11: 4.5, 32: 2.3, 21: 2.2, 22: 2.4, 28: 0.6, 138: 0.8}
COMMON_CODES: dict[str, dict[int, float]] = {
    "straw": _STRAW | {25: 1.0, 22: 1.1, 28: 0.5},
    "straw and tray": _STRAW | {25: 1.0, 97: 3.5, 45: 4.2, 46: 3.0},
    "cap": _CAP | {25: 0.6, 45: 0.4, 46: 0.3},
    "cap and tray": _CAP | {97: 11.0, 11: 8.0, 29: 5.0, 26: 4.0},
    "plain": {98: 43.0, 11: 23.5, 26: 11.3, 31: 7.5, 32: 4.0, 29: 6.5, 21: 2.2, 45: 1.9, 25: 1.7, 46: 1.2}
    | {28: 0.7, 138: 0.6, 22: 0.6},
    "twin": {98: 45.0, 11: 25.0, 137: 16.0, 26: 11.3, 31: 4.6, 29: 4.0, 28: 1.2, 21: 1.5, 32: 1.2, 45: 0.9}
    | {25: 0.9, 46: 0.8, 138: 0.4, 22: 0.4},
}
MAIN_CODES = (11, 98, 137, 139)  # a machine of the kind leans to them as much as the next one
# Every other code is rare. The commonest of them come first; the rest follow in numeric order.
_RANKED = (
    *(111, 27, 47, 51, 68, 30, 1, 18, 74, 56, 0, 52, 40, 8, 7, 6, 104, 135, 17, 19, 130, 115, 10),
    *(14, 79, 37, 73, 112, 100, 102, 41, 128, 78, 119, 20, 5, 83, 75, 143, 67, 127, 48, 94, 35),
)
_COMMON = {code for share in COMMON_CODES.values() for code in share}
RARE_CODES = (*_RANKED, *(code for code in CODES if code not in _COMMON and code not in _RANKED))
RARE_TOP_SHARE = 0.36
RARE_FALL_OFF = 25.0  # ranks until a rare code is e times rarer still

# How many alarms in a row a code tends to stay, where it is not the usual number.
USUAL_RUN = 3.7
RUN_LENGTHS = {139: 6.2, 98: 4.4, 32: 4.0, 45: 2.1, 28: 2.0, 25: 2.0, 46: 2.0, 138: 2.2, 27: 1.9, 30: 1.8}

# How many times likelier than by chance the second code is right after the first.
LIFTS = {
    (98, 11): 2.5, (11, 98): 1.9, (137, 11): 3.6, (11, 137): 2.5, (137, 28): 2.0, (98, 25): 2.0,
    (25, 98): 1.6, (28, 98): 1.6, (25, 11): 1.8, (28, 11): 1.8, (25, 28): 3.0, (21, 26): 1.5,
    (31, 26): 3.6, (26, 31): 2.6, (29, 26): 2.8, (26, 29): 1.6, (32, 29): 2.5, (97, 139): 3.0,
    (139, 97): 3.0, (21, 22): 4.0, (22, 21): 4.0, (45, 46): 4.0, (46, 45): 4.0, (27, 30): 5.0,
    (30, 27): 5.0, (48, 40): 9.0, (8, 7): 30.0, (7, 6): 30.0, (7, 8): 30.0,
}  # fmt: skip


class FollowUpCode(NamedTuple):
    """``code`` follows a sign by some hours, with ``chance``."""

    code: int
    chance: float


# What makes rare codes foreseeable: a sign today, the trouble it announces later in the same day or the next.
FOLLOW_UP_CODES = {
    17: FollowUpCode(24, 0.5),
    27: FollowUpCode(28, 0.45),
    30: FollowUpCode(25, 0.45),
    35: FollowUpCode(23, 0.5),
    40: FollowUpCode(48, 0.7),
    47: FollowUpCode(45, 0.45),
    94: FollowUpCode(53, 0.5),
    115: FollowUpCode(132, 0.5),
    138: FollowUpCode(21, 0.25),
}
# These come mostly as consequences; the share is what is left to chance.
UNANNOUNCED_SHARE = 0.02
ANNOUNCED_CODES = (23, 24, 53, 132)


class ShiftPattern(NamedTuple):
    """How one machine of the fleet is used."""

    kind: str
    days_a_week: int
    shift_hours: float
    typical_episode: float  # alarms, median


# Twenty machines as different from each other as the published ones; each score of a fleet gets all of them.
SHIFT_PATTERNS = (
    ShiftPattern("straw", 7, 24, 12.6),
    ShiftPattern("straw and tray", 6, 24, 2.7),
    ShiftPattern("straw and tray", 6, 24, 2.9),
    ShiftPattern("cap and tray", 6, 24, 7.2),
    ShiftPattern("cap", 3, 9, 3.6),
    ShiftPattern("plain", 6, 15, 4.0),
    ShiftPattern("twin", 7, 24, 9.7),
    ShiftPattern("twin", 7, 24, 7.4),
    ShiftPattern("plain", 5, 17, 2.9),
    ShiftPattern("cap", 7, 22, 8.4),
    ShiftPattern("twin", 7, 14, 8.8),
    ShiftPattern("straw", 2, 14, 5.9),
    ShiftPattern("plain", 7, 12, 7.6),
    ShiftPattern("plain", 7, 12, 7.1),
    ShiftPattern("cap", 5, 14, 7.8),
    ShiftPattern("cap", 2, 24, 5.5),
    ShiftPattern("plain", 3, 9, 2.7),
    ShiftPattern("plain", 7, 15, 4.2),
    ShiftPattern("plain", 4, 12, 2.9),
    ShiftPattern("straw", 1, 8, 1.8),
)
