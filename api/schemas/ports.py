"""Ports of a workspace: which ones listen, and who they are shared with."""

from pydantic import ConfigDict, Field

from api.schemas.base import Document, Form, Timestamp
from codehub.domain.port_shares import DEFAULT_LIFETIME, Audience, Sharing

MOST_SECONDS = 315_360_000


class Share(Document):
    """Who besides the owner may open a port, and until when."""

    audience: Audience = Field(
        description="`users`: everyone who is signed in; `public`: everyone with the link."
    )
    created_at: Timestamp
    expires_at: Timestamp | None = Field(description="`null` means until the owner stops sharing it.")


class SharedPort(Share):
    """A port that was just shared."""

    port: int
    url: str = Field(description="The link for others.")


class PortItem(Document):
    """A port that a program listens on, or that is shared."""

    port: int
    process: str | None = Field(description="The name of the program, if it is known.")
    listening: bool
    url: str | None = Field(description="Where to open it; `null` if ports have no origins on this CodeHub.")
    share: Share | None = Field(description="`null` means that only the owner can open it.")


class PortList(Document):
    """The ports of a workspace, in order."""

    items: list[PortItem]
    sharing: Sharing = Field(description="The widest audience that administrators allow.")
    max_share_seconds: int | None = Field(
        description="The longest time that a port may be shared; `null` means no limit."
    )
    unavailable: str | None = Field(
        description="Why ports cannot be listed or opened, in a sentence; `null` if they can."
    )


class SharePort(Form):
    """Who to share a port with, and for how long."""

    model_config = ConfigDict(json_schema_extra={"example": {"audience": "users", "expires_in": 28800}})

    audience: Audience = Audience.USERS
    expires_in: int | None = Field(
        default=round(DEFAULT_LIFETIME.total_seconds()),
        ge=1,
        le=MOST_SECONDS,
        description="Seconds; `null` means until you stop sharing it. Default: 8 hours, or less if "
        "administrators allow less.",
    )
