"""What workflows can be searched by in the Temporal Web UI."""

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from codehub.domain.conditions import WorkspaceId

WORKSPACE_ID = SearchAttributeKey.for_keyword("WorkspaceId")
OWNER_ID = SearchAttributeKey.for_keyword("OwnerId")
OPERATION = SearchAttributeKey.for_keyword("Operation")
PHASE = SearchAttributeKey.for_keyword("Phase")
NAMES = tuple(key.name for key in (WORKSPACE_ID, OWNER_ID, OPERATION, PHASE))


def attributes_of(workspace_id: WorkspaceId, owner_id: str) -> TypedSearchAttributes:
    """What every workflow of a workspace carries from its start."""
    return TypedSearchAttributes(
        [SearchAttributePair(WORKSPACE_ID, workspace_id), SearchAttributePair(OWNER_ID, owner_id)]
    )


async def ensure_search_attributes(client: Client) -> None:
    """Register those that the namespace lacks; workflows that name others are refused by the server."""
    known = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), retry=True
    )
    missing = set(NAMES) - set(known.custom_attributes)
    if not missing:
        return
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    request = AddSearchAttributesRequest(
        namespace=client.namespace, search_attributes=dict.fromkeys(missing, keyword)
    )
    try:
        await client.operator_service.add_search_attributes(request, retry=True)
    except RPCError as error:
        # Another worker was faster.
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
