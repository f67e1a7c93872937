"""All settings, by concern."""

from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, Field

from codehub.domain.port_shares import SharingRules
from codehub.origins import LOOPBACK, LOOPBACK_DOMAIN, OriginMode, Origins
from codehub.settings.backends import Docker, Kubernetes, Local, Workspaces
from codehub.settings.processes import Api, Egress, General, Oidc, Proxy, Sweeps, Worker
from codehub.settings.rules import Gc, Limits, Ports, Retention, Ttl
from codehub.settings.servers import S3, Database, Redis, Temporal
from codehub.settings.types import (
    port_range,
)

EVERY_INTERFACE = frozenset({"0.0.0.0", "::"})  # noqa: S104 (compared, not bound)


class Settings(BaseModel, frozen=True):
    """All settings, by concern; without arguments, the defaults."""

    general: General = Field(default_factory=General)
    api: Api = Field(default_factory=Api)
    oidc: Oidc = Field(default_factory=Oidc)
    proxy: Proxy = Field(default_factory=Proxy)
    egress: Egress = Field(default_factory=Egress)
    database: Database = Field(default_factory=Database)
    redis: Redis = Field(default_factory=Redis)
    s3: S3 = Field(default_factory=S3)
    temporal: Temporal = Field(default_factory=Temporal)
    workspaces: Workspaces = Field(default_factory=Workspaces)
    local: Local = Field(default_factory=Local)
    docker: Docker = Field(default_factory=Docker)
    kubernetes: Kubernetes = Field(default_factory=Kubernetes)
    ttl: Ttl = Field(default_factory=Ttl)
    ports: Ports = Field(default_factory=Ports)
    limits: Limits = Field(default_factory=Limits)
    gc: Gc = Field(default_factory=Gc)
    retention: Retention = Field(default_factory=Retention)
    worker: Worker = Field(default_factory=Worker)
    sweeps: Sweeps = Field(default_factory=Sweeps)

    @property
    def egress_socket(self) -> Path:
        """The UNIX socket of the egress gateway."""
        return self.egress.socket or self.general.data_dir / "run" / "egress" / "gateway.sock"

    @property
    def public_base_url(self) -> str:
        """The URL of CodeHub for browsers, without a slash at the end."""
        return self.general.public_base_url or f"http://{self._public_host}:{self.proxy.port}"

    @property
    def origins(self) -> Origins:
        """Where browsers find CodeHub and its workspaces."""
        mode = OriginMode(self.workspaces.origins)
        domain = self.workspaces.domain or LOOPBACK_DOMAIN
        return Origins(self.public_base_url, mode, domain, port_range(self.workspaces.ports))

    @property
    def sharing_rules(self) -> SharingRules:
        """Return the administrators' rules for sharing ports."""
        seconds = self.ports.max_share_seconds
        return SharingRules(self.ports.sharing, None if seconds is None else timedelta(seconds=seconds))

    @property
    def _public_host(self) -> str:
        host = self.proxy.host
        if host in LOOPBACK or host in EVERY_INTERFACE:
            return LOOPBACK_DOMAIN
        return f"[{host}]" if ":" in host else host
