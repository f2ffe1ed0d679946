"""Machines that have too much of something are named in the warnings, to those whose machines they are."""

from datetime import timedelta

from service.app.service import Service
from service.app.stores import Stores
from service.machines.limits_store import NO_MACHINE, note_excess
from service.machines.models import ExcessKind, Machine
from tests.service.conftest import NOW
from wire.timestamps import to_us


def test_a_warning_says_which_machine_has_too_much_of_what(
    service: Service, stores: Stores, filler: Machine
) -> None:
    assert not {"too_many_gaps", "too_many_epochs", "quarantine_full"} & service.health().warnings.keys()
    of_machines = (ExcessKind.GAPS, ExcessKind.EPOCHS, ExcessKind.QUARANTINE, ExcessKind.CODES)
    counts: dict[tuple[int, ExcessKind], int] = {(filler.row_id, kind): 1234 for kind in of_machines}
    with stores.database.write() as connection:
        note_excess(connection, counts, to_us(NOW))
        note_excess(connection, counts, to_us(NOW))
        counts = {(NO_MACHINE, ExcessKind.QUARANTINE): 5, (NO_MACHINE, ExcessKind.UNENROLLED): 7}
        note_excess(connection, counts, to_us(NOW))
    warnings = service.health().warnings
    assert "padova/filler-1 (2,468 since 2026-11-16)." in warnings["too_many_gaps"]
    assert "padova/filler-1 (2,468 since 2026-11-16)." in warnings["too_many_epochs"]
    assert "padova/filler-1 (2,468 since 2026-11-16)." in warnings["too_many_codes"]
    assert "filler-1 (2,468 since 2026-11-16), no known machine (5 since" in warnings["quarantine_full"]
    assert "no known machine (7 since 2026-11-16)." in warnings["too_many_unenrolled"]
    of_others = service.health(lambda site: site == "lyon").warnings
    assert "padova" not in str(of_others)


def test_a_warning_ends_a_day_after_the_last_excess(service: Service, stores: Stores, filler: Machine) -> None:
    with stores.database.write() as connection:
        counts = {(filler.row_id, ExcessKind.GAPS): 1}
        note_excess(connection, counts, to_us(NOW - timedelta(hours=25)))
    assert "too_many_gaps" not in service.health().warnings
