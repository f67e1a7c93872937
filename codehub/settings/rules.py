"""Settings of the rules for workspaces: idle times, shared ports, limits and retention."""

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from codehub.domain.port_shares import Sharing
from codehub.settings.concern import Concern
from codehub.settings.types import (
    CONFLICT,
    Count,
    Seconds,
)


class Ttl(Concern):
    """When unused workspaces are stopped and archived."""

    model_config = SettingsConfigDict(env_prefix="TTL_")

    standby_seconds: Seconds = Field(
        600, description="Idle time after which a running workspace is stopped; use 10800 in production."
    )
    archive_seconds: Seconds = Field(
        1800, description="Time in standby after which it is archived; use 86400 in production."
    )
    # Last, because they are checked against the others.
    max_standby_seconds: Seconds = Field(
        604_800, description="Longest idle time before a stop that users may choose; a week by default."
    )
    max_archive_seconds: Seconds = Field(
        7_776_000,
        description="Longest time in standby before archiving that users may choose; 90 days by default.",
    )

    @field_validator("max_standby_seconds", "max_archive_seconds")
    @classmethod
    def _covers_the_default(cls, longest: int, info: ValidationInfo) -> int:
        name = (info.field_name or "").removeprefix("max_")
        if longest < info.data.get(name, 0):
            other = f"{cls.model_config['env_prefix']}{name.upper()}"
            raise PydanticCustomError(CONFLICT, "must be at least {other}", {"other": other})
        return longest


class Ports(Concern):
    """Sharing of servers inside workspaces."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_PORTS_")

    sharing: Sharing = Field(
        Sharing.USERS,
        description="The widest audience for a shared port: `none`, `users` who are signed in, or the "
        "`public`, which lets every account publish on your domain.",
    )
    max_share_seconds: Seconds | None = Field(
        None, description="Longest time that a port may be shared; unset means no limit."
    )


class Limits(Concern):
    """How many workspaces may run at once."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_LIMITS_")

    max_running_per_user: Count = Field(2, description="Maximum running workspaces per user.")
    max_running_global: Count = Field(100, description="Maximum running workspaces in total.")


class Gc(Concern):
    """When unneeded archives are removed."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_GC_")

    grace_seconds: Seconds = Field(7200, description="How long an unneeded archive is kept.")
    undelete_seconds: Seconds = Field(604800, description="How long a deleted workspace can be undeleted.")


class Retention(Concern):
    """How long rows are kept after what they describe has ended."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_RETENTION_")

    workspaces_days: Count = Field(
        90, description="Days to keep a deleted workspace; at least the undelete period."
    )
    archives_days: Count = Field(90, description="Days to keep the record of a removed archive.")
    events_days: Count = Field(90, description="Days to keep the audit trail.")
    sessions_days: Count = Field(90, description="Days to keep a session after its end.")
    tokens_days: Count = Field(90, description="Days to keep an API token after it expired or was revoked.")
    audit_log_days: Count = Field(
        365, description="Days to keep the audit log of accounts and administration; at least 1."
    )
    usage_days: Count = Field(7, description="Days to keep the usage history of workspaces.")
    egress_log_days: Count = Field(7, description="Days to keep the log of workspaces' connections.")
