"""Error responses: the only place that knows which HTTP status an error has."""

import logging
import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from api.middleware import request_id_of
from api.schemas.errors import Code, error_document
from api.security.access import ACCESS
from api.validation_errors import describe
from codehub.services import errors as refusals
from codehub.services.outages import OUTAGES, is_outage

log = logging.getLogger(__name__)

UNAUTHORIZED = 401
OPERATION_RETRY_SECONDS = 2
OUTAGE_RETRY_SECONDS = 2
OUTAGE = "A service that CodeHub depends on is not answering. Try again in a few seconds."
UNEXPECTED = "Something went wrong in CodeHub. Give an administrator the request id."


class ApiError(Exception):
    """A response with status 400 or above."""

    def __init__(
        self, status: int, code: Code, message: str, *, retry_after: float | None = None, **more: object
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.more = more
        self.headers: dict[str, str] = {"WWW-Authenticate": "Bearer"} if status == UNAUTHORIZED else {}
        if retry_after is not None:
            seconds = max(1, math.ceil(retry_after))
            self.headers["Retry-After"] = str(seconds)
            self.more["retry_after_seconds"] = seconds


def too_many_requests(message: str, wait: timedelta | float) -> ApiError:
    seconds = wait.total_seconds() if isinstance(wait, timedelta) else wait
    return ApiError(429, Code.TOO_MANY_REQUESTS, message, retry_after=seconds)


def _operation_in_progress(refused: refusals.OperationInProgress) -> ApiError:
    return ApiError(
        409,
        Code.OPERATION_IN_PROGRESS,
        str(refused),
        retry_after=OPERATION_RETRY_SECONDS,
        operation=refused.operation,
        since=refused.since,
    )


def _invalid_state(refused: refusals.InvalidState) -> ApiError:
    error = ApiError(409, Code.INVALID_STATE, str(refused), phase=refused.phase)
    if refused.choices:
        error.more["choices"] = list(refused.choices)
    return error


def _limit_exceeded(refused: refusals.LimitExceeded) -> ApiError:
    running = [
        {"id": each.workspace_id, "name": each.name, "phase": each.phase, "desired_state": each.desired_state}
        for each in refused.running
    ]
    return ApiError(429, Code.LIMIT_EXCEEDED, str(refused), scope=refused.scope, running=running)


def _disk_limit_exceeded(refused: refusals.DiskLimitExceeded) -> ApiError:
    used, limit = refused.used_bytes, refused.limit_bytes
    return ApiError(409, Code.DISK_LIMIT_EXCEEDED, str(refused), used_bytes=used, limit_bytes=limit)


def _locked_out(refused: refusals.LockedOut) -> ApiError:
    return too_many_requests(str(refused), refused.retry_after)


def _plain(status: int, code: Code) -> Callable[[Any], ApiError]:
    return lambda refused: ApiError(status, code, str(refused))


TRANSLATIONS: Mapping[type[refusals.RequestRefused], Callable[[Any], ApiError]] = {
    refusals.WorkspaceNotFound: _plain(404, Code.WORKSPACE_NOT_FOUND),
    refusals.OperationInProgress: _operation_in_progress,
    refusals.InvalidState: _invalid_state,
    refusals.OwnerDisabled: _invalid_state,
    refusals.LimitExceeded: _limit_exceeded,
    refusals.DiskLimitExceeded: _disk_limit_exceeded,
    refusals.VersionConflict: _plain(412, Code.PRECONDITION_FAILED),
    refusals.IdempotencyConflict: _plain(409, Code.CONFLICT),
    refusals.ImageNotAllowed: _plain(400, Code.INVALID_REQUEST),
    refusals.IdleTimeTooLong: _plain(400, Code.INVALID_REQUEST),
    refusals.SignInRefused: _plain(401, Code.UNAUTHORIZED),
    refusals.WrongPassword: _plain(403, Code.WRONG_PASSWORD),
    refusals.SecondFactorRequired: _plain(401, Code.SECOND_FACTOR_REQUIRED),
    refusals.SecondFactorWrong: _plain(401, Code.UNAUTHORIZED),
    refusals.WrongCode: _plain(400, Code.INVALID_REQUEST),
    refusals.AuthenticatorEnabled: _plain(409, Code.CONFLICT),
    refusals.NoAuthenticator: _plain(409, Code.CONFLICT),
    refusals.NoPassword: _plain(409, Code.CONFLICT),
    refusals.LockedOut: _locked_out,
    refusals.CredentialNotFound: _plain(404, Code.NOT_FOUND),
    refusals.UserNotFound: _plain(404, Code.NOT_FOUND),
    refusals.TooManyTokens: _plain(409, Code.CONFLICT),
    refusals.SingleAccountOnly: _plain(409, Code.CONFLICT),
    refusals.UsernameTaken: _plain(409, Code.CONFLICT),
    refusals.LastAdmin: _plain(409, Code.CONFLICT),
    refusals.InvalidUsername: _plain(400, Code.INVALID_REQUEST),
    refusals.InvalidPassword: _plain(400, Code.INVALID_REQUEST),
    refusals.InvalidTokenName: _plain(400, Code.INVALID_REQUEST),
    refusals.InvalidScope: _plain(400, Code.INVALID_REQUEST),
    refusals.InvalidExpiry: _plain(400, Code.INVALID_REQUEST),
    refusals.InvalidNetworkPolicy: _plain(400, Code.INVALID_REQUEST),
    refusals.PortShareRefused: _plain(400, Code.INVALID_REQUEST),
}


def install_error_handlers(app: FastAPI) -> None:
    """Give every error the same shape; an unexpected one is logged, and its response has no details."""
    app.add_exception_handler(ApiError, _handle_api_error)
    app.add_exception_handler(refusals.RequestRefused, _handle_refusal)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    for outage in (*OUTAGES, DBAPIError):
        app.add_exception_handler(outage, _handle_outage)
    app.add_exception_handler(Exception, _handle_unexpected)


def _respond(request: Request, error: ApiError) -> JSONResponse:
    document = error_document(error.code, error.message, request_id=request_id_of(request), **error.more)
    return JSONResponse(jsonable_encoder(document), status_code=error.status, headers=error.headers)


async def _handle_api_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)  # noqa: S101 (for the type checker)
    return _respond(request, error)


async def _handle_refusal(request: Request, error: Exception) -> JSONResponse:
    return _respond(request, TRANSLATIONS[type(error)](error))  # type: ignore[index]


async def _handle_validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    message, fields = describe(error.errors())
    return _respond(request, ApiError(400, Code.INVALID_REQUEST, message, fields=fields))


METHOD_NOT_ALLOWED = 405
HTTP_CODES = {404: Code.NOT_FOUND, 405: Code.METHOD_NOT_ALLOWED, 413: Code.BODY_TOO_LARGE}
# In place of the framework's messages, which do not say what to do.
HTTP_MESSAGES = {
    404: "There is nothing at this path. /api/v1/openapi.json lists all paths.",
    405: "This path does not support the method. The Allow header lists those that it does.",
}


async def _handle_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    code = HTTP_CODES.get(error.status_code, Code.INVALID_REQUEST)
    response = ApiError(error.status_code, code, HTTP_MESSAGES.get(error.status_code, str(error.detail)))
    response.headers.update(error.headers or {})
    if error.status_code == METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(_methods_of(request))
    return _respond(request, response)


def _methods_of(request: Request) -> list[str]:
    """Return all methods of the path; the framework lists only those of one of its routes."""
    path = getattr(request.scope.get("route"), "path_format", None)
    return sorted(method for method, known in ACCESS if known == path)


async def _handle_outage(request: Request, error: Exception) -> JSONResponse:
    if not is_outage(error):
        return await _handle_unexpected(request, error)
    log.warning("a dependency is down: %s", error, extra={"fields": {"request_id": request_id_of(request)}})
    code = Code.DEPENDENCY_UNAVAILABLE
    return _respond(request, ApiError(503, code, OUTAGE, retry_after=OUTAGE_RETRY_SECONDS))


async def _handle_unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected error", exc_info=error, extra={"fields": {"request_id": request_id_of(request)}})
    return _respond(request, ApiError(500, Code.INTERNAL_ERROR, UNEXPECTED))
