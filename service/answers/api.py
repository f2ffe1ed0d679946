"""Routes of answers."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from service.answers.store import AnswerQuery, AnswerStore
from service.http.csv_download import CsvResponse, csv_response, documented
from service.http.problems import responses
from service.http.request import WORD, Limit, LongCursorQuery, MachineName, Site, actor, paginate
from service.machines.models import MachineReader
from wire.clock import PlantClock
from wire.identity import ID_PATTERN, MachineId
from wire.rest.answers import AlarmAnswerCreate, AnswerCreate, AnswerPage, AnswerView

_COLUMNS = tuple(AnswerView.model_fields)
SiteFilter = Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of this site.")]
MachineFilter = Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of machines so named.")]
CodeFilter = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only of this code.")]
NotificationNumber = Annotated[int, Path(ge=1, le=WORD, description="Number of the notification.", examples=[1])]


def router(answers: AnswerStore, machines: MachineReader, clock: PlantClock, horizon: timedelta) -> APIRouter:
    """Return the routes; ``machines`` must be limited to the caller's sites, as ``answers`` is."""
    routes = APIRouter(prefix="/v1", tags=["answers"])

    @routes.post("/notifications/{number}/answer", status_code=201, responses=responses(404, 422))
    def answer_notification(number: NotificationNumber, body: AnswerCreate, request: Request) -> AnswerView:
        """Say whether a notification was `handled`, `useful` (but nothing was done) or `wrong`.

        An earlier answer to it is replaced. Answers are counted and exported; nothing is learned from them.
        """
        return answers.answer_notification(number, body, who=actor(request), at=clock.now())

    @routes.post("/machines/{site}/{machine}/answers", status_code=201, responses=responses(404, 410, 422))
    def answer_alarm(site: Site, machine: MachineName, body: AlarmAnswerCreate, request: Request) -> AnswerView:
        """Answer an expected alarm of a machine, or its notification if one is open.

        Without a notification it replaces an answer that was given within one forecast horizon.
        """
        enrolled = machines.get(MachineId(site, machine))
        enrolled.require_active()
        return answers.answer_alarm(enrolled, body.code, body, who=actor(request), at=clock.now(), valid=horizon)

    @routes.get("/answers", responses=responses(422))
    def list_answers(
        site: SiteFilter = None,
        machine: MachineFilter = None,
        code: CodeFilter = None,
        limit: Limit = 100,
        cursor: LongCursorQuery = None,
    ) -> AnswerPage:
        """List answers with their notes, newest first."""
        query = AnswerQuery(site, machine, code, before=cursor, limit=limit + 1)
        page, following = paginate(answers.page(query), limit, lambda answer: answer.id)
        return AnswerPage(answers=page, next=following)

    @routes.get("/answers.csv", response_class=CsvResponse, responses=documented(_COLUMNS))
    def export_answers(
        site: SiteFilter = None, machine: MachineFilter = None, code: CodeFilter = None
    ) -> CsvResponse:
        """Export answers, newest first.

        An apostrophe is put before a text that a spreadsheet would read as a formula.
        """
        found = answers.all(AnswerQuery(site, machine, code))
        rows = (answer.model_dump(mode="json").values() for answer in found)
        return csv_response(_COLUMNS, rows, "answers", site, machine)

    return routes
