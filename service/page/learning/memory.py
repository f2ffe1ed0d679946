"""The memory, live: how it is shared among machines and labels, and how balanced it is."""

from typing import Any

from nicegui import html

from service.page.components.blocks import empty_state, number, stats, table
from service.page.components.elements import Chart
from wire.rest.memory import CodeMemory, MachineMemory, MemoryView, VersionMemory

_AXIS = {"axisLine": {"lineStyle": {"color": "var(--line)"}}, "axisTick": {"show": False}}
_QUIET = {"axisLabel": {"color": "var(--soft)"}, "splitLine": {"lineStyle": {"color": "var(--line)"}}}
_LEGEND = {"top": 0, "left": 0, "textStyle": {"color": "var(--ink)"}, "itemWidth": 14, "itemHeight": 10}
_ROW = 1.7  # rem for each machine
_MOST_LABELS = 60


class MemoryPart:
    """Three charts and their figures."""

    def __init__(self) -> None:
        self._place = html.div().classes("ac-stack")

    def show(self, memory: MemoryView) -> None:
        """Draw the memory of the version that serves."""
        self._place.clear()
        with self._place:
            if not memory.machines:
                empty_state(
                    "Nothing remembered yet",
                    "With every machine that is learned, windows of all machines before are learned again. "
                    "Which of them are kept is shown here.",
                )
                return
            _draw(memory)


def _draw(memory: MemoryView) -> None:
    replayed = sum(one.replayed for one in memory.machines)
    held_out = sum(one.held_out for one in memory.machines)
    stats(
        {
            "windows": f"{replayed + held_out:,}",
            "machines": len(memory.machines),
            "labels": sum(one.windows > 0 for one in memory.codes),
            "KL to uniform": number(memory.kl_to_uniform, 3),
            "KL of what was offered": number(memory.kl_offered, 3),
        },
        {
            "windows": f"{replayed:,} replayed, {held_out:,} held out",
            "labels": f"of {len(memory.codes)} that are forecast",
            "KL to uniform": "0 if all labels came alike",
            "KL of what was offered": "what a fair draw would have",
        },
    )
    html.h3("By label")
    html.p(
        "Each label's share of all labels in the memory, beside its share in all windows that it was chosen from. "
        "Where all labels came alike, every bar would end at the dashed line."
    ).classes("small quiet")
    Chart(by_label(memory.codes), label=_by_label_words(memory.codes))
    with html.div().classes("ac-two"):
        with html.div():
            html.h3("By machine")
            chart = Chart(by_machine(memory.machines), label=_by_machine_words(memory.machines))
            chart.style(f"height: {4.5 + _ROW * len(memory.machines):.1f}rem")
        with html.div():
            html.h3("Balance over versions")
            Chart(over_versions(memory.versions), label=_over_versions_words(memory.versions))
    with html.details():
        html.summary("As a table")
        table(
            ("Code", "Alarm", "Windows kept", "Windows offered"),
            [(one.code, one.text, one.windows, one.offered) for one in memory.codes],
            numbers=(2, 3),
            label="Memory by label",
        )


def by_label(codes: list[CodeMemory]) -> dict[str, Any]:
    """Return each label's share of what is kept and of what was offered."""
    shown = codes[:_MOST_LABELS]
    kept, offered = sum(one.windows for one in codes) or 1, sum(one.offered or 0 for one in codes)
    tips = [
        f"{one.code} {one.text}\nin {one.windows} windows kept" + (f" of {one.offered} offered" if offered else "")
        for one in shown
    ]
    series: list[dict[str, Any]] = [
        {
            "name": "kept",
            "type": "bar",
            "data": [{"value": one.windows / kept, "tip": tip} for one, tip in zip(shown, tips, strict=True)],
            "itemStyle": {"color": "var(--bar)"},
            "markLine": {
                "symbol": "none",
                "silent": True,
                "lineStyle": {"color": "var(--ink)", "type": "dashed"},
                "label": {"formatter": "all alike", "color": "var(--ink)", "position": "insideEndTop"},
                "data": [{"yAxis": 1 / max(len(codes), 1)}],
            },
        }
    ]
    if offered:
        series.append(
            {
                "name": "offered",
                "type": "bar",
                "data": [
                    {"value": (one.offered or 0) / offered, "tip": tip}
                    for one, tip in zip(shown, tips, strict=True)
                ],
                # A pattern beside the colour: hollow bars are told apart without it.
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
            "name": "code",
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
    """Return how many windows each machine has, replayed and held out."""

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
                    "tip": f"{one.machine}\n{one.replayed} windows replayed, {one.held_out} held out",
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
            bars("replayed", "replayed", {"color": "var(--bar)"}),
            bars(
                "held out", "held_out", {"color": "var(--bar-soft)", "borderColor": "var(--bar)", "borderWidth": 1}
            ),
        ],
    }


def over_versions(versions: list[VersionMemory]) -> dict[str, Any]:
    """Return how the divergence went from version to version."""

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
                    "tip": f"{one.version}, {one.machines} machines\nKL kept {number(one.kl_to_uniform, 3)}, "
                    f"offered {number(one.kl_offered, 3)}",
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
            line("KL kept", "kl_to_uniform", "var(--bar)"),
            line("KL offered", "kl_offered", "var(--usual)", type="dashed") | {"symbol": "diamond"},
        ],
    }


def _by_label_words(codes: list[CodeMemory]) -> str:
    most = codes[0]
    return f"{len(codes)} labels; {most.code} {most.text} comes in most windows, {most.windows}."


def _by_machine_words(machines: list[MachineMemory]) -> str:
    shares = [one.replayed + one.held_out for one in machines]
    return f"{len(machines)} machines with {min(shares)} to {max(shares)} windows each."


def _over_versions_words(versions: list[VersionMemory]) -> str:
    parts = ", ".join(f"{one.version} {number(one.kl_to_uniform, 3)}" for one in versions[-12:])
    return f"KL to uniform by version: {parts}."
