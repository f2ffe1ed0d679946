"""The service as seven processes: what one does the others know, and none of them is missed when it is gone."""

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from alarmcast import Client, NotSignedIn
from service.database.engine import Database
from service.database.weight_files import WeightsFolder
from service.forecasts.version_store import VersionStore
from tests.conftest import broker_in, require, wait_until
from tests.faults.proxy import Proxy
from tests.page.conftest import FLAGS, PASSWORD, signed_in
from tests.service.conftest import small_model
from tests.support.cluster import USUAL, ClusterPlant
from tests.support.streams import Reader
from tests.system.conftest import write_alarms
from wire.enums import ConnectionStatus, ProcessRole, Role
from wire.rest.auth import SESSION_COOKIE

pytestmark = pytest.mark.timeout(300)  # the first test waits for seven processes
MACHINE = "padova/filler-0"
SOON = 1.0  # seconds in which a new champion is served everywhere


@pytest.fixture(scope="module")
def cluster(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPlant]:
    """Three ingesters, two API processes, two workers, a machine, and two models, the second of which serves."""
    require(shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    folder = tmp_path_factory.mktemp("cluster")
    broker = broker_in(folder / "mosquitto")
    broker.start()
    plant = ClusterPlant(folder, broker, database_url=postgresql)
    plant.empty()
    try:
        plant.start_service()
        plant.api.enrolment.enrol(MACHINE)
        connect_once(plant, folder / "quiet.jsonl")
        for seed in (1, 2):
            learned_elsewhere(postgresql, folder / "elsewhere", seed)
        yield plant
    finally:
        for process in plant.processes:
            if process.running is not None:
                process.kill()
        broker.kill()


def connect_once(plant: ClusterPlant, log: Path) -> None:
    """Let the machine's agent connect without an alarm; a machine that never connected is not forecast."""
    log.touch()
    agent = plant.agent(MACHINE, log)
    agent.start()
    wait_until(lambda: plant.api.fleet.overview().cards[0].presence is ConnectionStatus.ONLINE, "it is online")
    agent.stop()


def learned_elsewhere(url: str, weights: Path, seed: int) -> None:
    """Let a model serve that some other host has learned: its weights are nowhere but in the database."""
    database = Database(url)
    versions = VersionStore(database, WeightsFolder(weights))
    versions.add_and_promote(small_model(seed=seed), report={}, at=datetime.now(UTC) - timedelta(days=1))
    database.close()
    shutil.rmtree(weights)


def test_every_process_is_on_the_roll_and_each_turn_is_one_processs(cluster: ClusterPlant) -> None:
    def turns() -> list[str]:
        return sorted(turn for one in cluster.api.health.status().processes or () for turn in one.leases)

    wait_until(lambda: turns() == ["agent_states", "leader"], "each turn is somebody's")
    found = cluster.api.health.status().processes
    assert found is not None
    assert sorted(role for one in found for role in one.roles) == sorted(
        role for role, number in USUAL.items() for _ in range(number)
    )


def test_a_new_champion_serves_in_every_process_within_a_second(cluster: ClusterPlant) -> None:
    first, second = (one.client for one in cluster.of(ProcessRole.API))
    for one in (first, second):
        wait_until(lambda: one.forecasts.get(MACHINE).model_version == "v2", "both serve the second")  # noqa: B023
    first.models.promote("v1", reason="back again", force=True)
    for one in (second, first):
        wait_until(lambda: one.forecasts.get(MACHINE).model_version == "v1", "it serves here", SOON)  # noqa: B023
    assert cluster.promotions() == [1, 2, 1]


def test_forecasts_are_stored_once_by_the_worker_whose_turn_it_is(cluster: ClusterPlant) -> None:
    wait_until(cluster.forecasts, "the grid's forecast is stored")
    assert cluster.forecasts() == 1


def test_events_are_shared_out_and_what_agents_say_is_heard_by_one(cluster: ClusterPlant, tmp_path: Path) -> None:
    log, machine = tmp_path / "alarms.jsonl", MACHINE
    agent = cluster.agent(machine, log)
    log.touch()
    reader = Reader(
        f"http://127.0.0.1:{cluster.of(ProcessRole.API)[1].port}/v1/stream",
        (cluster.of(ProcessRole.API)[1].data / "admin.token").read_text().strip(),
    ).start()
    wait_until(lambda: cluster.of(ProcessRole.API)[1].client.health.status().streams == 1, "the stream is open")
    agent.start()
    for number in range(30):
        write_alarms(log, number, 1)
        time.sleep(0.05)
    wait_until(lambda: cluster.given(machine) == 30 and not cluster.spooled(machine), "everything is acked")
    assert cluster.counted() == {machine: 30}
    wait_until(lambda: len(reader.of("alarm")) == 30, "a stream of another process tells all of them")
    (card,) = [card for card in cluster.api.fleet.overview().cards if f"{card.site}/{card.machine}" == machine]
    assert card.presence is ConnectionStatus.ONLINE
    agent.stop()
    wait_until(
        lambda: cluster.api.fleet.overview().cards[0].presence is ConnectionStatus.OFFLINE,
        "its farewell is heard as well",
    )


def test_rights_that_end_in_one_process_end_in_the_others(cluster: ClusterPlant) -> None:
    cluster.api.users.add("ben", role=Role.VIEWER, password=PASSWORD)
    first, second = (f"http://127.0.0.1:{one.port}" for one in cluster.of(ProcessRole.API))
    with Client(first) as visitor:
        token = visitor.session.login("ben", PASSWORD).token
    with Client(second, key=token) as elsewhere, Client(first, key=token) as here:
        assert elsewhere.session.me().name == "ben"
        here.session.logout()
        wait_until(lambda: _is_out(elsewhere), "it is out there too", 3)  # it would be remembered for five


def _is_out(client: Client) -> bool:
    try:
        client.session.me()
    except NotSignedIn:
        return True
    return False


def test_a_page_lives_on_when_its_process_is_killed(cluster: ClusterPlant) -> None:
    """Whatever stands in front of several API processes sends a browser on to another; here a proxy does."""
    program = shutil.which("chromium")
    require(program, "chromium")
    first, second = cluster.of(ProcessRole.API)
    cluster.port = first.port
    token = signed_in(cluster, Role.OPERATOR)
    proxy = Proxy(first.port, mqtt=False)
    proxy.start()
    address = f"http://127.0.0.1:{proxy.port}"
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
            context = chromium.new_context()
            context.add_cookies([{"name": SESSION_COOKIE, "value": token, "url": address}])
            page = context.new_page()
            page.goto(address, timeout=60_000)
            expect(page.get_by_text("filler-0").first).to_be_visible(timeout=30_000)
            proxy.target = second.port
            first.process.kill()
            proxy.drop()
            second.client.enrolment.enrol("padova/newcomer")
            expect(page.get_by_text("newcomer").first).to_be_visible(timeout=60_000)
            assert page.url == f"{address}/"
            chromium.close()
    finally:
        proxy.stop()
        first.process.start()
        wait_until(first.is_ready, "it is ready again", 60)


def test_another_takes_the_duties_over_when_their_worker_is_killed(cluster: ClusterPlant) -> None:
    def leader() -> str | None:
        processes = cluster.api.health.status().processes or []
        return next((one.name for one in processes if "leader" in one.leases), None)

    before = leader()
    (killed,) = [one for one in cluster.of(ProcessRole.WORKER) if f"-{one.pid}-" in str(before)]
    killed.process.kill()
    wait_until(lambda: leader() not in (None, before), "another leads", 30)
    killed.process.start()
    wait_until(killed.is_ready, "it is ready again", 60)


def test_a_missing_role_is_told(cluster: ClusterPlant) -> None:
    for one in cluster.of(ProcessRole.INGEST):
        one.process.stop()
    wait_until(lambda: "roles" in cluster.api.health.status().warnings, "somebody is missed")
    assert "no process receives alarms from the broker" in cluster.api.health.status().warnings["roles"]
    for one in cluster.of(ProcessRole.INGEST):
        one.process.start()
    for one in cluster.of(ProcessRole.INGEST):
        wait_until(one.is_ready, f"{one.name} is ready again", 60)
    wait_until(lambda: "roles" not in cluster.api.health.status().warnings, "nobody is missed")
