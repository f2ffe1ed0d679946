"""A text is composed for its reader from fields; what a machine or a site is called plays no part in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.http.message import ANOTHER, MACHINE, WITHHELD, Message, Sentence, decoded
from service.learning.versions import report_for

# Without a letter, ordinary words, words of the sentences themselves, and one that begins like another.
SITES = ["4711", "4", "0-8", "the", "alarm", "machine", "another", "pad", "padova"]
OWN = frozenset({"padova"})
FELL = (
    f"{MACHINE}: average precision fell from 3/4 (the best version) to 0.400, by 0.100; no alarm came in 4 days."
)


@pytest.mark.parametrize("site", SITES[:-1])
def test_a_machine_of_another_site_has_no_name_and_the_text_is_else_the_same(site: str) -> None:
    message = Message((Sentence(FELL, f"{site}/17"), Sentence(FELL, "padova/17"), Sentence("All together.")))
    own = str(message.shown_to(OWN))
    assert own == " ".join([FELL.replace(MACHINE, ANOTHER), FELL.replace(MACHINE, "padova/17"), "All together."])
    assert f"{site}/" not in own
    assert str(message.shown_to(None)) == str(message) == str(message.shown_to(OWN | {site}))
    assert f"{site}/17: average" in str(message)


@given(
    st.lists(
        st.builds(
            Sentence, st.text(), st.one_of(st.none(), st.sampled_from(SITES).map("{}/17".format)), st.booleans()
        )
    )
)
def test_a_message_is_read_as_it_was_stored(sentences: list[Sentence]) -> None:
    message = Message(tuple(sentences))
    assert decoded(message.encoded()) == message


def test_a_text_of_an_earlier_version_is_for_people_of_all_sites() -> None:
    stored = "4711/17: average precision fell."
    message = decoded(stored)
    assert message
    assert str(message.shown_to(None)) == stored
    assert str(message.shown_to(OWN)) == WITHHELD
    assert decoded(None) is None


def test_details_that_are_withheld_are_mentioned_once() -> None:
    two = (Sentence("4711/17 is missing", restricted=True), Sentence("the/17 is missing", restricted=True))
    assert str(Message((Sentence("It failed."), *two)).shown_to(OWN)) == f"It failed. {WITHHELD}"


def report(site: str) -> dict[str, object]:
    both = (f"{site}/17", "padova/17")
    sentences = [Sentence(FELL, name).as_json() for name in both]
    return {
        "summary": "2 machines, 30 codes",
        "windows": {"train": 300},
        "memory": {"by_machine": {name: {"replayed": 9} for name in both}, "by_code": {"26": 12}},
        "left_out": dict.fromkeys(both, 3),
        "verdict": {
            "passed": False,
            "reasons": sentences,
            "undecided": sentences,
            "figures": [{"machine": name, "loss": 0.1} for name in (*both, None)],
        },
        "new_part": {"of": f"{site}/17"},
    }


@pytest.mark.parametrize("site", SITES[:-1])
def test_a_report_keeps_other_sites_to_itself(site: str) -> None:
    stored = report(site)
    own = report_for(stored, OWN)
    assert f"{site}/" not in json.dumps(own)
    assert own["memory"] == {"by_machine": {"padova/17": {"replayed": 9}}, "by_code": {"26": 12}}
    assert own["left_out"] == {"padova/17": 3}
    verdict = own["verdict"]
    assert (
        verdict["reasons"]
        == verdict["undecided"]
        == [FELL.replace(MACHINE, one) for one in (ANOTHER, "padova/17")]
    )
    assert [row["machine"] for row in verdict["figures"]] == [ANOTHER, "padova/17", None]
    assert own["summary"] == stored["summary"]
    assert "new_part" not in own, "what nobody has judged is for people of all sites"


def test_people_of_all_sites_read_the_whole_report_in_sentences() -> None:
    stored = report("4711")
    shown = report_for(stored, None)
    assert shown["verdict"]["reasons"] == [FELL.replace(MACHINE, one) for one in ("4711/17", "padova/17")]
    assert {name: shown[name] for name in stored if name != "verdict"} == {
        name: stored[name] for name in stored if name != "verdict"
    }


def test_a_report_of_an_earlier_version_withholds_its_sentences() -> None:
    old = {"verdict": {"passed": False, "reasons": ["4711/17: fell.", "the/1: fell."], "undecided": []}}
    assert report_for(old, OWN)["verdict"] == {
        "passed": False, "reasons": [WITHHELD], "undecided": [], "figures": [],
    }  # fmt: skip
    assert report_for(old, None)["verdict"]["reasons"] == ["4711/17: fell.", "the/1: fell."]
    assert report_for({}, OWN) == report_for({}, None) == {}
