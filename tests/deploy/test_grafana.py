"""Dashboards that Grafana can load, of which every question has an answer."""

from pathlib import Path

import pytest
import yaml

from tests.deploy.monitoring import GRAFANA, Dashboard, dashboards, exposed, metrics_in, promtool

SHAPES = {"stat", "timeseries"}
each = pytest.mark.parametrize("dashboard", dashboards(), ids=lambda dashboard: dashboard.name)


def test_there_is_one_for_the_fleet_for_ingest_for_learning_and_for_the_service() -> None:
    assert [one.name for one in dashboards()] == ["fleet", "ingest", "learning", "service"]
    assert len({one.content["uid"] for one in dashboards()}) == 4


@each
def test_every_expression_is_one_that_prometheus_understands(dashboard: Dashboard, tmp_path: Path) -> None:
    asked = [{"record": f"panel:{n}", "expr": expr} for n, expr in enumerate(dashboard.expressions())]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": asked}]}), encoding="utf-8")
    checked = promtool("check", "rules", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(asked)} rules found" in checked.stdout


def test_an_expression_that_prometheus_does_not_understand_would_be_noticed(tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    rule = {"record": "panel:0", "expr": "sum(rate(alarmcast_events_total))"}
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": [rule]}]}), encoding="utf-8")
    assert promtool("check", "rules", file).returncode != 0


@each
def test_no_panel_is_bound_to_a_data_source_that_is_not_chosen_here(dashboard: Dashboard) -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    variables = {one["name"]: one for one in dashboard.content["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["instance"]["datasource"] == chosen
    for panel in dashboard.content["panels"]:
        assert [panel["datasource"], *(target["datasource"] for target in panel["targets"])] == [chosen] * (
            1 + len(panel["targets"])
        )


@each
def test_every_panel_has_a_title_a_sentence_a_unit_and_a_place_of_its_own(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.content["panels"]:
        assert panel["type"] in SHAPES
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    numbers = [panel["id"] for panel in dashboard.content["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_dashboards_ask_only_for_what_a_running_service_tells_and_show_all_of_it(told: str) -> None:
    names = exposed(told)
    asked = {name for one in dashboards() for expr in one.expressions() for name in metrics_in(expr)}
    assert asked <= names
    ours = {name for name in names if name.startswith("alarmcast_")}
    unseen = {name for name in ours - asked if not name.endswith(("_sum", "_count"))}
    assert unseen == set()


def test_what_is_provisioned_is_where_it_says() -> None:
    sources = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text(encoding="utf-8"))
    providers = yaml.safe_load((GRAFANA / "provisioning/dashboards/alarmcast.yml").read_text(encoding="utf-8"))
    assert [one["type"] for one in sources["datasources"]] == ["prometheus"]
    assert "uid" not in sources["datasources"][0]
    assert providers["providers"][0]["options"]["path"] == "/etc/grafana/dashboards"
