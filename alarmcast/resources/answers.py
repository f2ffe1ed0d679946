"""Answers of operators to notifications and expected alarms."""

from alarmcast.endpoint import Resource, TransportT, download, operation, pages
from alarmcast.requests import MachineName, RequestSpec, path_params
from wire.enums import Answer
from wire.rest.answers import AlarmAnswerCreate, AnswerCreate, AnswerPage, AnswerView


class Answers(Resource[TransportT]):
    """``client.answers``."""

    @operation("POST /v1/notifications/{number}/answer", AnswerView)
    def answer_notification(self, number: int, answer: Answer, *, note: str | None = None) -> RequestSpec:
        """Answer a notification, in place of an earlier answer."""
        return RequestSpec(at={"number": number}, body=AnswerCreate(answer=answer, note=note))

    @operation("POST /v1/machines/{site}/{machine}/answers", AnswerView)
    def answer_alarm(
        self, machine: MachineName, code: int, answer: Answer, *, note: str | None = None
    ) -> RequestSpec:
        """Answer an expected alarm of a machine, or its notification if one is open."""
        return RequestSpec(at=path_params(machine), body=AlarmAnswerCreate(code=code, answer=answer, note=note))

    @operation("GET /v1/answers", AnswerPage)
    def page(
        self,
        *,
        site: str | None = None,
        machine: str | None = None,
        code: int | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> RequestSpec:
        """Return one page of answers, newest first."""
        filters = {"site": site, "machine": machine, "code": code}
        return RequestSpec(params={"limit": limit, "cursor": cursor, **filters})

    all = pages(page, lambda page: page.answers)

    @download("/v1/answers.csv")
    def export(
        self, *, site: str | None = None, machine: str | None = None, code: int | None = None
    ) -> RequestSpec:
        """Yield answers as CSV, newest first."""
        return RequestSpec(params={"site": site, "machine": machine, "code": code})
