"""Shelves, acknowledgements, maintenance, webhooks and notices over REST: right input, and every kind of wrong."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.auth.audit_store import AuditStore
from service.machines.models import Machine
from service.notifications.models import Notification, NotificationChanges
from service.notifications.store import NotificationStore
from tests.conftest import wait_until
from tests.service.conftest import NOW, connect_agent, enrolled, raise_alarms
from tests.support.api_client import BASE, Client, problem
from tests.support.webhook_receiver import Receiver
from wire.enums import DeliveryState
from wire.identity import MachineId
from wire.rest.notifications import NotificationPage, WebhookMessage
from wire.rest.suppression import AcknowledgementPage, MaintenancePage, ShelvedAlarmPage
from wire.rest.webhooks import NewWebhook, WebhookList
from wire.signature import verify
from wire.timestamps import isoformat

HOUR = timedelta(hours=1)
SHELF = {"code": 139, "minutes": 60, "reason": "sensor"}
HOOK = {"url": "http://127.0.0.1:9/x", "severity": "low"}

pytestmark = pytest.mark.usefixtures("filler", "champion")


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def post(client: Client, path: str, body: Any) -> Any:
    answer = client.request("POST", path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def opened(stores: Stores, machine: Machine, *codes: int) -> None:
    made = [
        (
            machine.row_id,
            Notification(0, machine.id, code, "Film torn", "high", NOW, NOW + 8 * HOUR, 0.7, 0.4, "v1", NOW),
        )
        for code in codes
    ]
    NotificationStore(stores.database).write(NotificationChanges(opened=made), at=NOW, wall=NOW)


def test_an_alarm_is_shelved_with_reason_and_end_shown_and_lifted(client: Client, stores: Stores) -> None:
    made = post(client, f"{BASE}/shelves", SHELF | {"by": "Anna"})
    assert (made["code"], made["text"], made["active"]) == (139, "Film torn", True)
    assert made["actor"].startswith("Anna (local admin")
    assert made["until"][:16] == isoformat(NOW + HOUR)[:16]
    assert {"from", "until"} <= set(made)
    for path in (f"{BASE}/shelves", "/v1/shelves"):
        page = client.get(path).json()
        assert ShelvedAlarmPage.model_validate(page)
        assert [one["id"] for one in page["shelves"]] == [made["id"]]
    lifted = client.request("DELETE", f"{BASE}/shelves/{made['id']}", params={"reason": "done"}).json()
    assert (lifted["active"], lifted["unshelved_at"] is not None) == (False, True)
    problem(client.request("DELETE", f"{BASE}/shelves/{made['id']}"), 409)
    assert client.get(f"{BASE}/shelves").json()["shelves"] == []
    assert len(client.get(f"{BASE}/shelves", active=False).json()["shelves"]) == 1
    assert [(deed.action, deed.reason) for deed in AuditStore(stores.database).newest(2)] == [
        ("unshelve", "done"),
        ("shelve", "sensor"),
    ]


def test_a_wrong_shelf_is_refused(client: Client) -> None:
    wrong: list[dict[str, Any]] = [
        {"code": -1},
        {"code": 2**31},
        {"code": "139"},
        {"minutes": 0},
        {"minutes": 7 * 24 * 60 + 1},
        {"minutes": 10**30},
        {"minutes": None},
        {"until": isoformat(NOW + HOUR)},
        {"minutes": None, "until": isoformat(NOW - HOUR)},
        {"minutes": None, "until": isoformat(NOW + timedelta(days=8))},
        {"minutes": None, "until": "2026-11-16T08:00:00"},
        {"reason": ""},
        {"reason": " "},
        {"reason": "a\x00b"},
        {"reason": "x" * 1001},
        {"reason": None},
        {"by": "\n"},
        {"extra": 1},
    ]
    for change in wrong:
        problem(client.request("POST", f"{BASE}/shelves", json=SHELF | change), 422)
    assert client.get("/v1/shelves").json()["shelves"] == []


def test_only_a_machine_that_is_there_can_be_shelved_and_only_its_own_shelf_lifted(
    client: Client, stores: Stores
) -> None:
    problem(client.request("POST", "/v1/machines/padova/none/shelves", json=SHELF), 404)
    problem(client.get("/v1/machines/padova/none/shelves"), 404)
    enrolled(stores.enrolments, MachineId("padova", "filler-2"))
    made = post(client, f"{BASE}/shelves", SHELF)
    problem(client.request("DELETE", f"/v1/machines/padova/filler-2/shelves/{made['id']}"), 404)
    problem(client.request("DELETE", f"{BASE}/shelves/999"), 404)
    problem(client.request("DELETE", f"{BASE}/shelves/0"), 422)
    problem(client.request("DELETE", f"{BASE}/shelves/{2**70}"), 422)
    client.request("POST", f"{BASE}/retire", json={"reason": "sold"})
    problem(client.request("POST", f"{BASE}/shelves", json=SHELF), 410)
    problem(client.request("POST", f"{BASE}/acknowledgements", json={"code": 1}), 410)


def test_lists_come_in_pages_that_neither_skip_nor_repeat(client: Client, stores: Stores, filler: Machine) -> None:
    for code in range(5):
        post(client, f"{BASE}/shelves", SHELF | {"code": code})
        post(client, f"{BASE}/acknowledgements", {"code": code})
        post(client, "/v1/maintenance", {"site": "padova", "until": isoformat(NOW + HOUR), "reason": "x"})
    opened(stores, filler, *range(5))
    lists = {
        f"{BASE}/shelves": "shelves",
        "/v1/shelves": "shelves",
        f"{BASE}/acknowledgements": "acknowledgements",
        "/v1/maintenance": "windows",
        "/v1/notifications": "notifications",
    }
    for path, name in lists.items():
        seen: list[int] = []
        cursor: dict[str, int] = {}
        while True:
            page = client.get(path, limit=2, **cursor).json()
            seen += [one["id"] for one in page[name]]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        assert len(seen) == 5
        assert seen == sorted(set(seen), reverse=True)
        for wrong in ({"limit": 0}, {"limit": 1001}, {"cursor": 0}, {"cursor": 2**63}, {"cursor": "x"}):
            problem(client.get(path, **wrong), 422)


def test_an_acknowledgement_is_shown_beside_its_notice(client: Client, stores: Stores, filler: Machine) -> None:
    opened(stores, filler, 139, 26)
    made = post(client, f"{BASE}/acknowledgements", {"code": 139, "note": "reel is coming", "by": "Anna"})
    notices = NotificationPage.model_validate(client.get("/v1/notifications").json()).notifications
    shown = {one.code: one for one in notices}
    assert made["notification"] == shown[139].id
    assert shown[139].acknowledged
    assert shown[139].acknowledged.note == "reel is coming"
    assert shown[26].acknowledged is None
    page = client.get(f"{BASE}/acknowledgements", active=True).json()
    assert AcknowledgementPage.model_validate(page).acknowledgements[0].ended_at is None
    for wrong in ({}, {"code": -1}, {"code": 1, "note": ""}, {"code": 1, "note": "\x00"}, {"code": 1, "x": 1}):
        problem(client.request("POST", f"{BASE}/acknowledgements", json=wrong), 422)
    problem(client.request("POST", "/v1/machines/padova/none/acknowledgements", json={"code": 1}), 404)


def test_notification_are_filtered_by_place_and_by_whether_they_stand(
    client: Client, stores: Stores, filler: Machine
) -> None:
    opened(stores, filler, 139)
    assert (
        len(client.get("/v1/notifications", open=True, site="padova", machine="filler-1").json()["notifications"])
        == 1
    )
    for other in ({"open": False}, {"site": "lyon"}, {"machine": "filler-2"}):
        assert client.get("/v1/notifications", **other).json()["notifications"] == []
    for wrong in ({"open": "perhaps"}, {"site": "NO"}, {"machine": "a/b"}):
        problem(client.get("/v1/notifications", **wrong), 422)


def test_maintenance_is_planned_shown_and_ended(client: Client) -> None:
    body = {"site": "padova", "from": isoformat(NOW + HOUR), "until": isoformat(NOW + 2 * HOUR), "reason": "belt"}
    planned = post(client, "/v1/maintenance", body | {"machine": "filler-1"})
    assert (planned["from"], planned["machine"], planned["active"]) == (body["from"], "filler-1", False)
    early = post(client, "/v1/maintenance", body | {"from": isoformat(NOW - HOUR)})
    assert early["active"]
    assert early["from"][:16] == isoformat(NOW)[:16], "what is past was told already"
    page = MaintenancePage.model_validate(client.get("/v1/maintenance", active=True).json())
    assert [one.id for one in page.windows] == [early["id"]]
    ended = client.request("DELETE", f"/v1/maintenance/{planned['id']}", params={"reason": "no need"}).json()
    assert ended["cancelled_at"]
    problem(client.request("DELETE", f"/v1/maintenance/{planned['id']}"), 409)
    problem(client.request("DELETE", "/v1/maintenance/999"), 404)


def test_a_wrong_maintenance_window_is_refused(client: Client) -> None:
    body = {"site": "padova", "until": isoformat(NOW + 2 * HOUR), "reason": "belt"}
    wrong: list[tuple[dict[str, Any], int]] = [
        ({"site": "lyon"}, 404),
        ({"machine": "none"}, 404),
        ({"site": "NO"}, 422),
        ({"until": isoformat(NOW - HOUR)}, 422),
        ({"from": isoformat(NOW + 3 * HOUR)}, 422),
        ({"until": None}, 422),
        ({"until": "9999-01-01T00:00:00Z"}, 422),
        ({"reason": ""}, 422),
        ({"extra": 1}, 422),
    ]
    for change, status in wrong:
        problem(client.request("POST", "/v1/maintenance", json=body | change), status)


def test_a_webhooks_secret_is_shown_once_and_its_test_is_signed_with_it(
    client: Client, receiver: Receiver
) -> None:
    made = NewWebhook.model_validate(post(client, "/v1/webhooks", HOOK | {"url": receiver.url("/andon")}))
    assert len(made.secret) > 40
    listed = client.get("/v1/webhooks")
    assert made.secret not in listed.text
    assert made.secret not in client.get(f"/v1/webhooks/{made.id}").text
    assert [one.id for one in WebhookList.model_validate(listed.json()).webhooks] == [made.id]
    answer = client.request("POST", f"/v1/webhooks/{made.id}/test").json()
    assert (answer["delivered"], answer["status"]) == (True, 204)
    [letter] = receiver.at("/andon")
    at = int(letter.headers["Alarmcast-Signature"].split(",")[0].removeprefix("t="))
    assert verify(made.secret, letter.headers["Alarmcast-Signature"], letter.body, now=at)
    assert WebhookMessage.model_validate_json(letter.body).notification is None
    receiver.answers["/andon"], receiver.text = 418, b"teapot"
    answer = client.request("POST", f"/v1/webhooks/{made.id}/test").json()
    assert (answer["delivered"], answer["status"], answer["answer"]) == (False, 418, "I'm a Teapot")


def test_a_webhook_is_switched_and_removed_with_a_reason(client: Client, stores: Stores) -> None:
    number = post(client, "/v1/webhooks", HOOK | {"site": "padova", "machine": "filler-1"})["id"]
    path = f"/v1/webhooks/{number}"
    off = client.request("PATCH", path, json={"enabled": False, "reason": "night"}).json()
    assert (off["enabled"], off["error"]) == (False, "night")
    problem(client.request("PATCH", path, json={"enabled": True}), 422)
    on = client.request("PATCH", path, json={"enabled": True, "reason": "day"}).json()
    assert (on["enabled"], on["error"]) == (True, None)
    problem(client.request("DELETE", path), 422)
    assert client.request("DELETE", path, params={"reason": "moved"}).status_code == 204
    problem(client.request("GET", path), 404)
    problem(client.request("DELETE", path, params={"reason": "x"}), 404)
    problem(client.request("POST", f"{path}/test"), 404)
    actions = [deed.action for deed in AuditStore(stores.database).newest(4)]
    assert actions == ["remove", "enable", "disable", "add"]


def test_a_wrong_webhook_is_refused(client: Client) -> None:
    wrong: list[tuple[dict[str, Any], int]] = [
        ({"url": "ftp://x/"}, 422),
        ({"url": "http://user:pass@x/"}, 422),
        ({"url": "http://169.254.169.254/"}, 422),
        ({"url": "http://2852039166/"}, 422),
        ({"url": "http://10.0.0.7/"}, 422),
        ({"url": "http://x:99999/"}, 422),
        ({"url": "http://x/\x01y"}, 422),
        ({"url": ""}, 422),
        ({"url": "http://x/" + "y" * 2000}, 422),
        ({"severity": "awful"}, 422),
        ({"machine": "filler-1"}, 422),
        ({"site": "padova", "machine": "none"}, 404),
        ({"site": "NO"}, 422),
        ({"secret": "mine"}, 422),
    ]
    for change, status in wrong:
        problem(client.request("POST", "/v1/webhooks", json=HOOK | change), status)


def test_whatever_address_was_taken_a_test_of_it_is_answered(client: Client) -> None:
    for url in (
        "http://xn--/",
        "http://a b/",
        "http://\u2024/",
        "http://x..y/",
        "http://%zz/",
        "http://127.0.0.1:9/",
    ):
        answer = client.request("POST", "/v1/webhooks", json=HOOK | {"url": url})
        if answer.status_code == 201:
            told = client.request("POST", f"/v1/webhooks/{answer.json()['id']}/test")
            assert (told.status_code, told.json()["delivered"]) == (200, False)
        else:
            problem(answer, 422)


def test_a_body_that_is_no_object_is_refused_everywhere(client: Client) -> None:
    for path in (f"{BASE}/shelves", f"{BASE}/acknowledgements", "/v1/maintenance", "/v1/webhooks"):
        for body in (b"", b"[]", b"{", b"null", b'{"code": NaN}', b"\xff"):
            problem(client.request("POST", path, content=body), 422)


def test_every_endpoint_here_is_documented_with_an_example(client: Client) -> None:
    document = client.get("/openapi.json").json()
    nouns = ("/shelves", "/acknowledgements", "/maintenance", "/webhooks", "/notification")
    paths = {path: methods for path, methods in document["paths"].items() if any(noun in path for noun in nouns)}
    assert len(paths) == 14
    for methods in paths.values():
        for one in methods.values():
            shown = [answer for code, answer in one["responses"].items() if code in {"200", "201"}]
            for answer in shown:
                name = answer["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
                assert document["components"]["schemas"][name]["examples"], name
            assert all("description" in parameter for parameter in one.get("parameters", []))


def test_a_forecast_reaches_a_webhook_and_a_shelved_alarm_does_not(
    service: Service, client: Client, stores: Stores, filler: Machine, receiver: Receiver
) -> None:
    raise_alarms(stores, filler, *((NOW - number * HOUR, 139) for number in range(1, 40)))
    connect_agent(stores, filler)
    post(client, "/v1/webhooks", {"url": receiver.url("/andon"), "severity": "low"})
    expected = {alarm["code"] for alarm in client.get(f"{BASE}/forecast").json()["alarms"] if alarm["expected"]}
    quiet, *told = sorted(expected)
    post(client, f"{BASE}/shelves", SHELF | {"code": quiet})
    service.notifications.thread.start()
    service.notifications.sender.start()
    try:
        service.forecasts.thread.refresh.run_grid()
        wait_until(lambda: service.notifications.sender.delivered == len(told), "the others are delivered")
    finally:
        service.notifications.thread.stop()
        service.notifications.sender.stop()
    assert [letter.content["notification"]["code"] for letter in receiver.at("/andon")] == told
    notices = NotificationPage.model_validate(client.get("/v1/notifications").json()).notifications
    assert [(one.code, [sent.state for sent in one.deliveries]) for one in notices] == [
        (code, [DeliveryState.DELIVERED]) for code in told[::-1]
    ]
    assert told, "or this test says nothing"
