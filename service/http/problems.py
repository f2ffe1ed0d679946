"""Errors as ``application/problem+json`` (RFC 9457), each with a sentence that says what to do."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from service.errors import InputRejected, NotSignedIn, ServiceError, Unavailable
from wire.rest.problems import FieldError, Problem, in_words

log = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
_SCHEMA = {"$ref": "#/components/schemas/Problem"}


def document(openapi: dict[str, Any]) -> dict[str, Any]:
    """Add the problem's schema to an OpenAPI document whose endpoints refer to it."""
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = openapi.setdefault("components", {}).setdefault("schemas", {})
    schemas |= schema.pop("$defs", {}) | {"Problem": schema}
    return openapi


def responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entries of an endpoint that may answer with these problems."""
    return {
        code: {"description": HTTPStatus(code).phrase, "content": {MEDIA_TYPE: {"schema": _SCHEMA}}}
        for code in codes
    }


def install(app: FastAPI) -> None:
    """Return every error of the app as a problem."""

    @app.exception_handler(ServiceError)
    async def service_error(request: Request, error: ServiceError) -> JSONResponse:
        return problem_of(request.url.path, error)

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
        errors = [
            FieldError(pointer="/".join(str(part) for part in item["loc"]), detail=in_words(item))
            for item in error.errors()
        ]
        detail = f"{errors[0].pointer}: {errors[0].detail}." if errors else "The request cannot be read."
        return _answer(request.url.path, 422, "Input rejected", detail, errors=errors)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's status for a body that is not text
            return _answer(request.url.path, 422, "Input rejected", f"The body cannot be read: {error.detail}.")
        title = HTTPStatus(error.status_code).phrase
        headers = dict(error.headers or {})
        return _answer(request.url.path, error.status_code, title, str(error.detail), headers=headers)

    @app.exception_handler(Exception)
    async def defect(request: Request, _error: Exception) -> JSONResponse:
        sentence = "This is a defect of the service; see its log."
        return _answer(request.url.path, 500, "Internal error", sentence)


def problem_of(path: str, error: ServiceError) -> JSONResponse:
    """Return an error of the service as the response to a path."""
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Unavailable) else {}
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = "Bearer"
    pointer = error.pointer if isinstance(error, InputRejected) else None
    errors = [FieldError(pointer=pointer, detail=str(error))] if pointer else None
    return _answer(path, error.status, error.title, str(error), errors=errors, headers=headers)


def _answer(
    path: str,
    status: int,
    title: str,
    detail: str,
    *,
    errors: list[FieldError] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    problem = Problem(title=title, status=status, detail=detail, instance=path, errors=errors or [])
    return JSONResponse(problem.model_dump(), status, headers, media_type=MEDIA_TYPE)
