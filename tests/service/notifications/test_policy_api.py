"""Notification policies over REST: set, read back, audited, and refused."""

from typing import Any

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.auth.audit_store import AuditStore
from tests.support.api_client import Client, problem

POLICIES = "/v1/notification-policies"
NEVER: list[dict[str, Any]] = [
    {"exclude_severities": ["low", "medium", "high"]},
    {"exclude_codes": [139, 26]},
    {"per_shift": 0},
]
WRONG: list[dict[str, Any]] = [
    {"high": {"probability": 1.01}},
    {"low": {"probability": -0.1}},
    {"low": {"lift": -1}},
    {"per_shift": -1},
    {"exclude_severities": ["odd"]},
    {"surprise": 1},
]

pytestmark = pytest.mark.usefixtures("filler", "champion")


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


def change(client: Client, path: str, policy: dict[str, Any] | None) -> Any:
    return client.request("PUT", path, json={"policy": policy, "reason": "fewer"})


def test_a_site_has_the_default_policy_until_it_gets_its_own(client: Client, stores: Stores) -> None:
    (before,) = client.get(POLICIES).json()["policies"]
    assert (before["site"], before["is_default"]) == ("padova", True)
    assert before["text"] == "High from 50 %; medium and low from 60 %."
    changed = change(client, f"{POLICIES}/padova", {"per_shift": 3}).json()
    assert changed["text"] == "High from 50 %; medium and low from 60 %; at most 3 per machine and shift."
    assert client.get(POLICIES).json()["policies"] == [changed]
    (entry,) = AuditStore(stores.database).newest(1)
    assert (entry.action, entry.subject, entry.reason) == ("set policy", "padova", "fewer")
    assert change(client, f"{POLICIES}/padova", {}).json() == before


@pytest.mark.parametrize("policy", NEVER + WRONG, ids=str)
def test_a_policy_that_cannot_notify_or_is_wrong_changes_nothing(client: Client, policy: dict[str, Any]) -> None:
    before = client.get(POLICIES).json()
    refused = problem(change(client, f"{POLICIES}/padova", policy), 422)
    assert refused["detail"].endswith(".")
    assert client.get(POLICIES).json() == before


def test_a_site_without_machines_has_no_policy(client: Client) -> None:
    problem(change(client, f"{POLICIES}/nowhere", {}), 404)


def test_a_webhook_gets_its_own_policy_and_loses_it(client: Client) -> None:
    body = {"url": "http://127.0.0.1:9/x", "severity": "high", "policy": {"exclude_severities": ["high"]}}
    problem(client.request("POST", "/v1/webhooks", json=body), 422)
    assert client.get("/v1/webhooks").json()["webhooks"] == []
    number = client.request("POST", "/v1/webhooks", json=body | {"policy": None}).json()["id"]
    path = f"/v1/webhooks/{number}/policy"
    problem(change(client, path, {"exclude_codes": [139]}), 422)
    own = change(client, path, {"high": {"probability": 0.8}}).json()
    assert own["policy_text"] == "High from 80 %; medium and low from 60 %."
    assert client.get(f"/v1/webhooks/{number}").json() == own
    assert change(client, path, None).json()["policy"] is None
    problem(change(client, "/v1/webhooks/99/policy", None), 404)
