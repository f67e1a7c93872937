"""The search attributes of workflows, for the Temporal Web UI."""

import logging

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from codehub.domain.conditions import WorkspaceId

log = logging.getLogger(__name__)

WORKSPACE_ID = SearchAttributeKey.for_keyword("WorkspaceId")
OWNER_ID = SearchAttributeKey.for_keyword("OwnerId")
OPERATION = SearchAttributeKey.for_keyword("Operation")
PHASE = SearchAttributeKey.for_keyword("Phase")
NAMES = tuple(key.name for key in (WORKSPACE_ID, OWNER_ID, OPERATION, PHASE))
KEYWORD = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD

# On Temporal Cloud and servers with authorization, only operators may do this.
NOT_ALLOWED = (
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.UNIMPLEMENTED,
)
# The namespace has reached its limit.
NOT_POSSIBLE = (RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.FAILED_PRECONDITION)


class SearchAttributesUnusable(Exception):
    """The namespace lacks search attributes; the message is for an operator."""


def attributes_of(workspace_id: WorkspaceId, owner_id: str) -> TypedSearchAttributes:
    """Return the search attributes of every workflow of a workspace."""
    return TypedSearchAttributes(
        [SearchAttributePair(WORKSPACE_ID, workspace_id), SearchAttributePair(OWNER_ID, owner_id)]
    )


async def ensure_search_attributes(client: Client) -> None:
    """Register missing search attributes; the server refuses workflows with unknown ones.

    Raise SearchAttributesUnusable if that is not allowed, or if one has another type.
    """
    try:
        request = ListSearchAttributesRequest(namespace=client.namespace)
        known = (await client.operator_service.list_search_attributes(request, retry=True)).custom_attributes
    except RPCError as error:
        if error.status not in NOT_ALLOWED:
            raise
        log.warning("cannot check whether Temporal has the search attributes %s", ", ".join(NAMES))
        return
    _require_type(client.namespace, dict(known))
    missing = [name for name in NAMES if name not in known]
    if missing:
        await _add(client, missing)


def _require_type(namespace: str, known: dict[str, int]) -> None:
    wrong = [name for name in NAMES if known.get(name, KEYWORD) != KEYWORD]
    if wrong:
        names = ", ".join(f"{name} ({_type_name(known[name])})" for name in wrong)
        raise SearchAttributesUnusable(
            f"The Temporal namespace {namespace} has search attributes that are not of the type Keyword: "
            f"{names}; use another namespace (CODEHUB_TEMPORAL_NAMESPACE), or remove them there."
        )


async def _add(client: Client, missing: list[str]) -> None:
    request = AddSearchAttributesRequest(
        namespace=client.namespace, search_attributes=dict.fromkeys(missing, KEYWORD)
    )
    try:
        await client.operator_service.add_search_attributes(request, retry=True)
    except RPCError as error:
        # Another worker registered them first.
        if error.status is RPCStatusCode.ALREADY_EXISTS:
            return
        if error.status in (*NOT_ALLOWED, *NOT_POSSIBLE):
            raise SearchAttributesUnusable(_explain(client.namespace, missing, error.message)) from error
        raise


def _explain(namespace: str, missing: list[str], reason: str) -> str:
    options = " ".join(f"--name {name} --type Keyword" for name in missing)
    return (
        f"The Temporal namespace {namespace} lacks the search attributes {', '.join(missing)} of the type "
        f"Keyword, and CodeHub cannot add them ({reason}): have an operator run `temporal operator "
        f"search-attribute create --namespace {namespace} {options}`, or add them in the console of Temporal "
        "Cloud."
    )


def _type_name(value: int) -> str:
    name = IndexedValueType.Name(IndexedValueType.ValueType(value))
    return name.removeprefix("INDEXED_VALUE_TYPE_").replace("_", " ").title().replace(" ", "")
