"""Show what a history file holds before anything of it is stored."""

from collections.abc import Callable
from datetime import datetime

from service.errors import InputRejected
from service.ingest.service import TimePolicy
from service.learning.history_file import ImportFile, scan
from service.learning.history_rows import columns_of, likely_preset
from service.learning.history_scan import RejectedRow, SeenRow, Survey, SurveyDetails, survey_file
from wire.rest.histories import HistoryCode, HistoryPreview, HistoryRejectedRow, HistoryRowView, HistorySerial
from wire.timestamps import from_us

_SHOWN, _SHOWN_TEXT = 200, 200


def preview_history(
    log: ImportFile, *, now: datetime, policy: TimePolicy, progress: Callable[[], None] = lambda: None
) -> HistoryPreview:
    """Return what a file holds, and why it cannot be imported as it is, if so."""
    bounds, details, lines = policy.bounds(now), SurveyDetails(), 0
    survey, problem, columns, preset = Survey.empty(log, bounds), None, [], None
    try:
        lines = scan(log)[1]
        columns, preset = columns_of(log), likely_preset(log)
        survey = survey_file(log, bounds, details=details, progress=progress)
        survey.insist(log.title, policy.retention)
    except InputRejected as error:
        problem = error
    return HistoryPreview(
        problem=None if problem is None else str(problem),
        field=None if problem is None or problem.pointer is None else problem.pointer.removeprefix("query/"),
        lines=lines,
        columns=columns,
        suggested_preset=preset,
        rows=survey.in_time,
        first_at=_moment(survey.first_us),
        last_at=_moment(survey.last_us),
        time_zone=str(log.zone),
        first_rows=[_row(seen) for seen in details.first_rows],
        codes=_codes(details),
        code_count=len(details.codes),
        rejected=survey.rejected,
        rejected_rows=[_rejected(row) for row in details.rejected_rows],
        serials=[HistorySerial(serial=name, rows=rows) for name, rows in survey.ordered_serials()[:_SHOWN]],
        cleared=survey.cleared,
        other_states=survey.other_states,
        too_old=survey.too_old,
        from_the_future=survey.from_the_future,
        notes=survey.notes(policy.retention),
    )


def _moment(at_us: int | None) -> datetime | None:
    return None if at_us is None else from_us(at_us)


def _row(seen: SeenRow) -> HistoryRowView:
    row, alarm = seen.row, seen.row.alarm
    return HistoryRowView(
        line=seen.number,
        text=_text(seen.line),
        at=None if alarm is None else alarm.at,
        code=None if alarm is None else alarm.code,
        name=_text(row.name) or None,
        serial=_text(seen.serial or "") or None,
        meaning="raised" if alarm is not None else "cleared" if row.cleared else "other",
    )


def _rejected(row: RejectedRow) -> HistoryRejectedRow:
    return HistoryRejectedRow(line=row.number, text=_text(row.line), reason=_text(row.reason))


def _codes(details: SurveyDetails) -> list[HistoryCode]:
    ordered = sorted(details.codes.items(), key=lambda one: (-one[1], one[0]))
    named = [(code, rows, details.names.get(code)) for code, rows in ordered[:_SHOWN]]
    return [
        HistoryCode(
            code=code,
            name=_text(row.name) or None if row else None,
            text=_text(row.text) or None if row else None,
            rows=rows,
        )
        for code, rows, row in named
    ]


def _text(text: str) -> str:
    shown = text.strip().lstrip("\ufeff")[:_SHOWN_TEXT]
    return "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in shown)
