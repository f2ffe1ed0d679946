"""The stream of a real service: alarms from a real agent, and an end that keeps nobody waiting."""

from pathlib import Path

from tests.conftest import wait_until
from tests.support.streams import Reader
from tests.system.conftest import Plant, write_alarms

MACHINE = "padova/filler-1"


def test_alarms_reach_the_stream_and_it_ends_in_order_when_the_service_is_told_to_stop(
    plant: Plant, tmp_path: Path
) -> None:
    plant.start_service()
    plant.enrol(MACHINE)
    readers = [Reader(f"{plant.address}/v1/stream", plant.key).start() for _ in range(3)]
    wait_until(lambda: plant.status()["streams"] == 3, "the streams are open")
    log = tmp_path / "alarms.jsonl"
    plant.agent(MACHINE, log).start()
    write_alarms(log, 0, 20)
    wait_until(lambda: all(len(reader.of("alarm")) == 20 for reader in readers), "all alarms have come")
    assert [(alarm["site"], alarm["machine"]) for alarm in readers[0].of("alarm")] == [("padova", "filler-1")] * 20
    # What the status says may be a second old.
    wait_until(lambda: plant.status()["agents"]["online"] == 1, "the status knows of the agent")
    status = plant.status()
    assert status["broker"]["connected"]
    assert (status["ingest"]["lag_events"], status["ingest"]["backfilled"]) == (0, 20), "their log is a day old"
    plant.service.stop()
    # Cut off, a reader would have raised instead of coming to the stream's end.
    wait_until(lambda: all(reader.ended for reader in readers), "the streams have ended in order")
    assert "graceful shutdown exceeded" not in plant.service.words()
