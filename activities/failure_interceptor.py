"""Turns failures into Temporal errors."""

from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from codehub.domain.failures import Failure


class FailureInterceptor(Interceptor):
    """Uses the reason of a failure as error type. Temporal does not retry it; the error policy decides."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _TranslateFailures(next)


class _TranslateFailures(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401
        try:
            return await super().execute_activity(input)
        except Failure as failure:
            raise ApplicationError(failure.message, type=failure.reason, non_retryable=True) from failure
