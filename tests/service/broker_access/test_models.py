"""Broker and database held against each other: nobody is ever let in by that, and nothing foreign is touched."""

import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.broker_access.edge_toml import AgentAccess, edge_toml, source_lines, with_source
from service.broker_access.models import (
    AclDiff,
    BrokerAclSnapshot,
    BrokerClient,
    Credential,
    Ownership,
    acls_for,
    diff,
    ownership,
)
from wire.enums import CredentialState
from wire.identity import MachineId
from wire.topics import agent_name

AT = datetime(2026, 11, 16, tzinfo=UTC)
FILLER = MachineId("padova", "filler-1")
NAME = agent_name(FILLER)
ISSUED = Credential(FILLER, 2, AT)
HOLDER = BrokerClient(NAME, NAME, 2, enabled=True, roles=(NAME,))


def compared(issued: Credential | None, holder: BrokerClient | None, *, role: bool = True) -> AclDiff:
    found = BrokerAclSnapshot({holder.name: holder} if holder else {}, {NAME: acls_for(FILLER)} if role else {})
    return diff([issued] if issued else [], found)


def test_where_both_agree_nothing_is_done() -> None:
    told = compared(ISSUED, HOLDER)
    assert told.is_empty
    assert told.matching == [FILLER]
    assert told.locked_out == []


def test_whom_the_broker_has_forgotten_is_made_and_kept_out() -> None:
    told = compared(ISSUED, None, role=False)
    assert told.missing == told.locked_out == [FILLER]


@pytest.mark.parametrize("generation", [1, None])
def test_a_broker_from_before_the_rotation_takes_an_old_password_and_keeps_the_machine_out(
    generation: int | None,
) -> None:
    told = compared(ISSUED, replace(HOLDER, generation=generation))
    assert told.outdated == told.locked_out == [FILLER]
    assert told.matching == []


def test_a_database_from_before_the_rotation_believes_the_broker() -> None:
    told = compared(ISSUED, replace(HOLDER, generation=5))
    assert told.newer == {FILLER: 5}
    assert told.matching == [FILLER]
    assert told.locked_out == []


def test_whom_the_broker_keeps_out_stays_out() -> None:
    told = compared(ISSUED, replace(HOLDER, enabled=False))
    assert told.disabled == told.locked_out == [FILLER]
    assert told.is_empty, "somebody may have had a reason; a person looks"


@pytest.mark.parametrize("enabled", [True, False])
def test_who_was_revoked_is_removed(enabled: bool) -> None:  # noqa: FBT001
    told = compared(replace(ISSUED, revoked_at=AT), replace(HOLDER, enabled=enabled))
    assert told.withdrawn == told.orphan_roles == [NAME]
    assert (told.unknown_clients, told.locked_out) == ([], [])


def test_who_is_in_no_database_is_disabled_and_not_removed() -> None:
    told = compared(None, HOLDER)
    assert told.unknown_clients == [NAME]
    assert told.withdrawn == told.orphan_roles == []
    assert compared(None, replace(HOLDER, enabled=False)).is_empty
    assert compared(None, None).orphan_roles == [NAME]


def test_who_was_disabled_as_unknown_is_let_back_in_with_its_own_password_and_with_no_older_one() -> None:
    aside = replace(HOLDER, enabled=False, set_aside=True)
    told = compared(ISSUED, aside)
    assert (told.returned, told.matching, told.locked_out) == ({FILLER: 2}, [FILLER], [])
    assert compared(ISSUED, replace(aside, generation=1)).locked_out == [FILLER]
    assert compared(replace(ISSUED, revoked_at=AT), aside).withdrawn == [NAME]


OTHER = replace(HOLDER, name="alarmcast-edge/padova/other")


@pytest.mark.parametrize(
    ("issued", "holders", "claimed_by", "found"),
    [
        ([], [], None, Ownership.UNCLAIMED),
        ([ISSUED], [], None, Ownership.UNCLAIMED),
        ([ISSUED], [HOLDER, OTHER], None, Ownership.UNCLAIMED),
        ([], [HOLDER], None, Ownership.DOUBTFUL),
        ([ISSUED], [OTHER], None, Ownership.DOUBTFUL),
        ([], [replace(HOLDER, enabled=False)], None, Ownership.UNCLAIMED),
        ([], [], "other", Ownership.FOREIGN),
        ([ISSUED], [HOLDER], "other", Ownership.FOREIGN),
        ([ISSUED], [HOLDER], "own", Ownership.OWN),
        ([ISSUED], [OTHER], "own", Ownership.OWN),
        ([], [HOLDER], "own", Ownership.DOUBTFUL),
    ],
)
def test_a_broker_is_an_installations_own_only_if_nothing_speaks_against_it(
    issued: list[Credential], holders: list[BrokerClient], claimed_by: str | None, found: Ownership
) -> None:
    guarded = BrokerAclSnapshot({one.name: one for one in holders}, {}, claimed_by)
    assert ownership("own", issued, guarded) is found


@pytest.mark.parametrize(
    "bent", [replace(HOLDER, client_id=None), replace(HOLDER, roles=()), replace(HOLDER, roles=(NAME, "admin"))]
)
def test_who_has_another_role_or_client_id_is_straightened(bent: BrokerClient) -> None:
    assert compared(ISSUED, bent).misconfigured == [FILLER]


def test_a_role_that_allows_more_is_straightened() -> None:
    more = BrokerAclSnapshot({NAME: HOLDER}, {NAME: acls_for(FILLER) | acls_for(MachineId("padova", "capper-2"))})
    assert diff([ISSUED], more).wrong_roles == [FILLER]
    assert compared(ISSUED, HOLDER, role=False).wrong_roles == [FILLER]


def test_a_credential_is_revoked_before_it_is_locked_out_before_it_is_active() -> None:
    assert ISSUED.state is CredentialState.ACTIVE
    locked = replace(ISSUED, locked_out_at=AT)
    assert locked.state is CredentialState.LOCKED_OUT
    assert replace(locked, revoked_at=AT).state is CredentialState.REVOKED


def test_no_two_machines_have_a_right_in_common() -> None:
    assert not acls_for(FILLER) & acls_for(MachineId("padova", "filler-2"))


def test_what_is_written_into_an_edge_toml_stays_inside_its_quotes() -> None:
    access = AgentAccess('broker"\n[x]', 1883)
    text = edge_toml(FILLER, access, username="u", password='p"\\', time_zone="Europe/Rome")  # noqa: S106
    assert "[x]\n" not in text
    assert '"p\\"\\\\"' in text


def test_an_edge_toml_goes_on_after_a_loaded_history() -> None:
    plain = edge_toml(FILLER, AgentAccess("b", 1883), username="u", password="p", time_zone="UTC")  # noqa: S106
    last = datetime(2026, 11, 15, 21, 40, 12, tzinfo=UTC)
    lines = source_lines(time_zone="Europe/Rome", serial='3"\n[x]', last_at=last)
    before, after = tomllib.loads(plain), tomllib.loads(with_source(plain, lines))
    more = {"timezone": "Europe/Rome", "serial": '3"\n[x]', "since": last + timedelta(microseconds=1)}
    assert after == before | {"source": before["source"] | more}
