"""The replay memory of the active version: its windows by alarm code and machine, and its imbalance."""

from typing import Any

from nicegui import html

from service.page.components.blocks import empty_state, number, stats, table
from service.page.components.elements import Chart
from service.page.texts import text
from wire.rest.memory import CodeMemory, MachineMemory, MemoryView, VersionMemory

_AXIS = {"axisLine": {"lineStyle": {"color": "var(--line)"}}, "axisTick": {"show": False}}
_QUIET = {"axisLabel": {"color": "var(--soft)"}, "splitLine": {"lineStyle": {"color": "var(--line)"}}}
_LEGEND = {"top": 0, "left": 0, "textStyle": {"color": "var(--ink)"}, "itemWidth": 14, "itemHeight": 10}
_ROW = 1.7  # rem for each machine
_SHOWN_CODES = 60


class ReplayMemory:
    """Three charts with their figures."""

    def __init__(self) -> None:
        self._place = html.div().classes("ac-stack")

    def show(self, memory: MemoryView) -> None:
        """Draw the memory of the active version."""
        self._place.clear()
        with self._place:
            if not memory.machines:
                empty_state(text("learning.memory.none"), text("learning.memory.none_help"))
                return
            _draw(memory)


def _draw(memory: MemoryView) -> None:
    replayed = sum(one.replayed for one in memory.machines)
    held_out = sum(one.held_out for one in memory.machines)
    stats(
        {
            text("learning.memory.windows"): (
                f"{replayed + held_out:,}",
                text("learning.memory.windows_note", replayed=replayed, held_out=held_out),
            ),
            text("learning.memory.machines"): len(memory.machines),
            text("learning.memory.codes"): (
                sum(one.windows > 0 for one in memory.codes),
                text("learning.memory.codes_note", count=len(memory.codes)),
            ),
            text("learning.memory.kl_memory"): (
                number(memory.kl_to_uniform, 3),
                text("learning.memory.kl_memory_note"),
            ),
            text("learning.memory.kl_data"): (
                number(memory.kl_offered, 3),
                text("learning.memory.kl_data_note"),
            ),
        }
    )
    html.h3(text("learning.memory.by_code"))
    html.p(text("learning.memory.by_code_help")).classes("small quiet")
    Chart(by_code(memory.codes), label=_by_code_label(memory.codes))
    with html.div().classes("ac-two"):
        with html.div():
            html.h3(text("learning.memory.by_machine"))
            chart = Chart(by_machine(memory.machines), label=_by_machine_label(memory.machines))
            chart.style(f"height: {4.5 + _ROW * len(memory.machines):.1f}rem")
        with html.div():
            html.h3(text("learning.memory.by_version"))
            Chart(by_version(memory.versions), label=_by_version_label(memory.versions))
    with html.details():
        html.summary(text("learning.show_table"))
        table(
            (
                text("learning.memory.code_column"),
                text("learning.memory.alarm_column"),
                text("learning.memory.memory_column"),
                text("learning.memory.data_column"),
            ),
            [(one.code, one.text, one.windows, one.offered) for one in memory.codes],
            numbers=(2, 3),
            label=text("learning.memory.table_label"),
        )


def by_code(codes: list[CodeMemory]) -> dict[str, Any]:
    """Return a chart of each code's share in memory and in the training data."""
    shown = codes[:_SHOWN_CODES]
    in_memory, in_data = sum(one.windows for one in codes) or 1, sum(one.offered or 0 for one in codes)
    tips = [
        text("learning.memory.tip", code=one.code, alarm=one.text, windows=one.windows)
        + (text("learning.memory.tip_data", offered=one.offered) if in_data else "")
        for one in shown
    ]
    series: list[dict[str, Any]] = [
        {
            "name": text("learning.memory.in_memory"),
            "type": "bar",
            "data": [{"value": one.windows / in_memory, "tip": tip} for one, tip in zip(shown, tips, strict=True)],
            "itemStyle": {"color": "var(--bar)"},
            "markLine": {
                "symbol": "none",
                "silent": True,
                "lineStyle": {"color": "var(--ink)", "type": "dashed"},
                "label": {
                    "formatter": text("learning.memory.uniform"),
                    "color": "var(--ink)",
                    "position": "insideEndTop",
                },
                "data": [{"yAxis": 1 / max(len(codes), 1)}],
            },
        }
    ]
    if in_data:
        series.append(
            {
                "name": text("learning.memory.in_data"),
                "type": "bar",
                "data": [
                    {"value": (one.offered or 0) / in_data, "tip": tip}
                    for one, tip in zip(shown, tips, strict=True)
                ],
                # Hollow bars can be distinguished without colour.
                "itemStyle": {"color": "transparent", "borderColor": "var(--usual)", "borderWidth": 1.5},
            }
        )
    return {
        "grid": {"left": 8, "right": 8, "top": 30, "bottom": 8, "containLabel": True},
        "legend": _LEGEND,
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}, "formatter": "@tip", "confine": True},
        "xAxis": {
            "type": "category",
            "data": [str(one.code) for one in shown],
            "name": text("learning.memory.code_axis"),
            "nameLocation": "middle",
            "nameGap": 24,
            "nameTextStyle": {"color": "var(--soft)"},
            "axisLabel": {"color": "var(--soft)"},
            **_AXIS,
        },
        "yAxis": {"type": "value", **_QUIET, "axisLabel": {"color": "var(--soft)", "formatter": "@percent"}},
        "series": series,
    }


def by_machine(machines: list[MachineMemory]) -> dict[str, Any]:
    """Return a chart of the windows of each machine, replayed and held out."""

    def bars(name: str, field: str, style: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "type": "bar",
            "stack": "windows",
            "itemStyle": style,
            "barMaxWidth": 18,
            "data": [
                {
                    "value": getattr(one, field),
                    "tip": text(
                        "learning.memory.machine_tip",
                        machine=one.machine,
                        replayed=one.replayed,
                        held_out=one.held_out,
                    ),
                }
                for one in machines
            ],
        }

    return {
        "grid": {"left": 16, "right": 16, "top": 30, "bottom": 8, "containLabel": True},
        "legend": _LEGEND,
        "tooltip": {"formatter": "@tip", "confine": True},
        "xAxis": {"type": "value", **_QUIET},
        "yAxis": {
            "type": "category",
            "inverse": True,
            "data": [one.machine for one in machines],
            "axisLabel": {"color": "var(--ink)", "interval": 0},
            **_AXIS,
        },
        "series": [
            bars(text("learning.memory.replayed"), "replayed", {"color": "var(--bar)"}),
            bars(
                text("learning.memory.held_out"),
                "held_out",
                {"color": "var(--bar-soft)", "borderColor": "var(--bar)", "borderWidth": 1},
            ),
        ],
    }


def by_version(versions: list[VersionMemory]) -> dict[str, Any]:
    """Return a chart of the KL divergence by version."""

    def line(name: str, field: str, color: str, **more: Any) -> dict[str, Any]:
        return {
            "name": name,
            "type": "line",
            "symbol": "circle",
            "symbolSize": 9,
            "lineStyle": {"color": color, **more},
            "itemStyle": {"color": "var(--surface)", "borderColor": color, "borderWidth": 2},
            "connectNulls": True,
            "data": [
                {
                    "value": getattr(one, field),
                    "tip": text(
                        "learning.memory.version_tip",
                        version=one.version,
                        machines=one.machines,
                        memory=number(one.kl_to_uniform, 3),
                        data=number(one.kl_offered, 3),
                    ),
                }
                for one in versions
            ],
        }

    return {
        "grid": {"left": 16, "right": 16, "top": 30, "bottom": 8, "containLabel": True},
        "legend": _LEGEND,
        "tooltip": {"trigger": "axis", "formatter": "@tip", "confine": True},
        "xAxis": {
            "type": "category",
            "data": [one.version for one in versions],
            "axisLabel": {"color": "var(--soft)"},
            **_AXIS,
        },
        "yAxis": {"type": "value", "min": 0, **_QUIET},
        "series": [
            line(text("learning.memory.kl_series"), "kl_to_uniform", "var(--bar)"),
            line(text("learning.memory.kl_data_series"), "kl_offered", "var(--usual)", type="dashed")
            | {"symbol": "diamond"},
        ],
    }


def _by_code_label(codes: list[CodeMemory]) -> str:
    most = codes[0]
    return text(
        "learning.memory.by_code_label",
        count=len(codes),
        code=most.code,
        alarm=most.text,
        windows=most.windows,
    )


def _by_machine_label(machines: list[MachineMemory]) -> str:
    shares = [one.replayed + one.held_out for one in machines]
    return text("learning.memory.by_machine_label", count=len(machines), least=min(shares), most=max(shares))


def _by_version_label(versions: list[VersionMemory]) -> str:
    parts = ", ".join(f"{one.version} {number(one.kl_to_uniform, 3)}" for one in versions[-12:])
    return text("learning.memory.by_version_label", values=parts)
