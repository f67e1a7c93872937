"""Network policies: what a workspace may connect to, and what it connected to."""

from typing import Annotated
from uuid import UUID

from pydantic import ConfigDict, Field, StringConstraints

from api.schemas.base import Document, Form, Text, Timestamp
from codehub.domain.egress import LONGEST_NAME, MOST_NAMES, EgressMode, Verdict

HostName = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME + 2), Text]


class Policy(Document):
    """A mode, and the names that `allow-list` permits."""

    mode: EgressMode
    names: list[str]


class NetworkPolicy(Document):
    """What a workspace may connect to. Every policy in `effective` must permit a connection."""

    enforced: bool = Field(
        description="Whether workspaces have no way out but the egress gateway. If not, they connect "
        "directly, and no policy applies."
    )
    choice: Policy | None = Field(description="What its owner chose; `null` means the default.")
    limit: Policy | None = Field(
        description="What an administrator set for it instead of the installation's policy."
    )
    installation: Policy = Field(description="The policy of workspaces without a limit.")
    owners_may_loosen: bool = Field(
        description="Whether a choice replaces the installation's policy instead of tightening it."
    )
    effective: list[Policy] = Field(description="The policies that apply now.")


class PatchNetworkPolicy(Form):
    """A new policy. It applies within seconds, also to open connections."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"mode": "allow-list", "names": ["*.example.org", "github.com"]}}
    )

    mode: EgressMode | None = Field(description="`null` returns to the default.")
    names: list[HostName] = Field(
        default=[],
        max_length=MOST_NAMES,
        description="For `allow-list`: exact names, and `*.example.org` for all names below example.org.",
    )


class NetworkLogItem(Document):
    """Connections to one name in one hour."""

    hour: Timestamp
    name: str = Field(description="`*` stands for further names of an hour with too many.")
    port: int
    verdict: Verdict
    count: int


class EgressItem(NetworkLogItem):
    """Connections of one workspace to one name in one hour."""

    workspace_id: UUID
    workspace: str | None = Field(description="Its name; `null` if the workspace no longer exists.")
    owner: str | None = Field(description="The user name of its owner.")


class EgressPage(Document):
    """Connections of all workspaces by hour, newest first."""

    items: list[EgressItem]
    next_cursor: str | None


class NetworkLog(Document):
    """Connections by hour, newest first; refused ones first within an hour."""

    items: list[NetworkLogItem]
