"""The alarm catalogue: what each code means and how to respond to it; editable by admins of all sites."""

from nicegui import html

from service.page.components.actions import Action, ActionRunner, FormValues
from service.page.components.blocks import panel, severity_text
from service.page.components.confirm_dialog import Field
from service.page.components.data_table import Cell, Column, DataTable, Row, actions_cell, alarm
from service.page.layout import PageContext
from service.page.notifications.answers import response_cell
from service.page.texts import text
from wire.enums import EntryOrigin, Role, Severity
from wire.rest.catalogue import AlarmResponse, EntryView

_RESPONSE = tuple(AlarmResponse.model_fields)
_MAX_TEXT, _MAX_PART = 200, 500


class CataloguePanel:
    """The table of all codes, forecast ones first."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._may_edit = context.may(Role.ADMIN, everywhere=True)
        self._entries: dict[str, EntryView] = {}
        self._actions = ActionRunner()
        columns = [
            Column(text("alarms.column.alarm")),
            Column(text("alarms.catalogue.target")),
            Column(text("alarms.catalogue.cause")),
            Column(text("alarms.catalogue.action")),
            *([Column("")] if self._may_edit else []),
        ]
        with panel(text("alarms.catalogue.title"), wide=True):
            html.p(text("alarms.catalogue.help")).classes("quiet small")
            with html.div().classes("ac-tools"):
                if self._may_edit:
                    add = html.button(text("alarms.catalogue.add"), type="button").classes("ac-button ac-small")
                    add.on("click", lambda: self._ask(None))
                    load = html.button(text("alarms.catalogue.import"), type="button")
                    load.classes("ac-button ac-small").on("click", self._ask_import)
                html.a(text("alarms.csv"), href="/v1/catalogue.csv", download="").classes("ac-button ac-small")
            self._table = DataTable(columns, label=text("alarms.catalogue.title"), first=15)
        self._table.on_action(self._on_action)

    async def refresh(self) -> None:
        """Fetch and show the catalogue."""
        catalogue = await self._context.cache.get_or_fetch("catalogue", self._context.client.catalogue.get)
        self._entries = {str(entry.code): entry for entry in catalogue.entries}
        self._table.show([self._row(entry) for entry in sorted(catalogue.entries, key=_order)])

    async def _on_action(self, _action: str, key: str) -> None:
        self._ask(self._entries[key])

    def _ask(self, entry: EntryView | None) -> None:
        async def edit(sent: FormValues) -> str:
            values = sent.values
            stored = await self._context.client.catalogue.edit(
                int(values["code"]) if entry is None else entry.code,
                text=values["text"],
                severity=Severity(values["severity"]),
                target=values["target"] == "yes",
                response=AlarmResponse(**{name: values[name] or None for name in _RESPONSE}),
            )
            return text("alarms.catalogue.saved", code=stored.code)

        number = Field(
            "code", text("alarms.catalogue.code"), "number", more={"required": True, "min": 0, "max": 2**31 - 1}
        )
        title = text("alarms.catalogue.add")
        if entry is not None:
            title = text("alarms.catalogue.edit_title", code=entry.code)
        self._actions.ask(
            Action(
                title,
                [text("alarms.catalogue.edit_help")],
                text("alarms.catalogue.save"),
                edit,
                fields=[*([number] if entry is None else []), *_fields(entry)],
            )
        )

    def _ask_import(self) -> None:
        async def load(sent: FormValues) -> str:
            result = await self._context.client.catalogue.add(sent.values["file"])
            done = text("alarms.catalogue.imported", entries=result.entries, new=result.new)
            return f"{done} {result.warning}" if result.warning else done

        file = Field("file", text("alarms.catalogue.file"), "file", more={"required": True, "accept": ".csv"})
        title, lines = text("alarms.catalogue.import"), [text("alarms.catalogue.import_help")]
        self._actions.ask(Action(title, lines, text("alarms.catalogue.import_button"), load, fields=[file]))

    def _row(self, entry: EntryView) -> Row:
        cells: list[Cell] = [
            alarm(entry.code, entry.text, entry.severity),
            text(f"alarms.catalogue.{_forecast(entry)}"),
            entry.response.cause,
            response_cell(entry.response.model_copy(update={"cause": None})),
        ]
        if self._may_edit:
            label = text("alarms.catalogue.edit_title", code=entry.code)
            cells.append(actions_cell(("edit", text("alarms.catalogue.edit"), label)))
        return Row(str(entry.code), cells)


def _forecast(entry: EntryView) -> str:
    if entry.target:
        return "yes"
    return "from_machine" if entry.origin is EntryOrigin.MACHINE else "no"


def _order(entry: EntryView) -> tuple[bool, int]:
    return (not entry.target, entry.code)


def _fields(entry: EntryView | None) -> list[Field]:
    severities = [{"value": one.value, "text": severity_text(one.value)} for one in Severity]
    truth = [{"value": one, "text": text(f"alarms.catalogue.{one}")} for one in ("yes", "no")]
    known = {} if entry is None else entry.response.model_dump()
    return [
        Field(
            "text",
            text("alarms.catalogue.text"),
            value=entry.text if entry else "",
            more={"required": True, "maxlength": _MAX_TEXT},
        ),
        Field(
            "severity",
            text("alarms.catalogue.severity"),
            "choice",
            value=entry.severity if entry else Severity.MEDIUM.value,
            options=severities,
        ),
        Field(
            "target",
            text("alarms.catalogue.target"),
            "choice",
            value="no" if entry and not entry.target else "yes",
            options=truth,
            hint=text("alarms.catalogue.target_hint"),
        ),
        *(
            Field(
                name,
                text(f"alarms.catalogue.{name}"),
                "url" if name == "link" else "text",
                value=known.get(name) or "",
                more={"maxlength": _MAX_PART},
            )
            for name in _RESPONSE
        ),
    ]
