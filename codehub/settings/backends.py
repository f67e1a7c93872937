"""Settings of the backends that run workspaces."""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from codehub.settings.concern import Concern
from codehub.settings.types import (
    CONFLICT,
    IMAGE_OF_INSTANCE,
    STORAGE_OF_INSTANCE,
    Address,
    Bytes,
    Count,
    Cpus,
    Directory,
    DockerUrl,
    Domain,
    FilePath,
    InstanceBackend,
    Label,
    LabelMap,
    LabelsByImage,
    NamespaceName,
    ObjectList,
    ObjectName,
    ObjectNames,
    PortRange,
    StepSeconds,
    StorageBackend,
    Switch,
    Uid,
)


class Workspaces(Concern):
    """Origins of workspaces in browsers; backends and default image."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_WORKSPACES_")

    origins: Literal["subdomain", "port", "path"] = Field(
        "subdomain",
        description="How browsers keep workspaces apart: `subdomain` gives each its own host name; "
        "`port` gives each its own port, for installations without a wildcard name. `path` "
        "is unsafe: any page in a workspace can act as the user who opens it.",
    )
    domain: Domain | None = Field(
        None,
        description="Domain below which each workspace has its host name, `{id}.{domain}`; use one that you "
        "registered only for this. Unset means `localhost`, for a public URL on loopback.",
    )
    ports: PortRange = Field(
        "9000-9999",
        description="Ports of workspaces with `CODEHUB_WORKSPACES_ORIGINS=port`; the proxy listens on all.",
    )
    instance_backend: InstanceBackend = Field(
        "local",
        description="What runs the IDEs; unset means that `codehub up` uses Docker if it can.",
    )
    storage_backend: StorageBackend = Field(
        default_factory=lambda fields: STORAGE_OF_INSTANCE[fields["instance_backend"]],
        description="What stores the homes; unset means the store that fits the instance backend.",
    )
    default_image_ref: str = Field(
        default_factory=lambda fields: IMAGE_OF_INSTANCE[fields["instance_backend"]],
        description="Default IDE or image; unset means one that fits the backend.",
    )

    allowed_images: str | None = Field(
        None,
        description="Comma-separated images that workspaces may run besides the default one: `*` stands for "
        "any characters, such as `registry.example/acme/*`, and a name without a tag allows every tag. "
        "Unset means `codehub-workspace`, and on the local backend the installed IDEs.",
    )

    @field_validator("storage_backend")
    @classmethod
    def _fits_the_instance_backend(cls, storage: StorageBackend, info: ValidationInfo) -> StorageBackend:
        instance = info.data.get("instance_backend")
        if instance and storage != STORAGE_OF_INSTANCE[instance]:
            requirement = (
                f"{STORAGE_OF_INSTANCE[instance]} when CODEHUB_WORKSPACES_INSTANCE_BACKEND is {instance}"
            )
            raise PydanticCustomError(CONFLICT, "must be {requirement}", {"requirement": requirement})
        return storage


class Local(Concern):
    """Processes on this machine, for the backend `local`."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_LOCAL_")

    unsafe_no_sandbox: Switch = Field(
        False,
        description="Run workspaces without a sandbox: each can read and change everything that CodeHub "
        "can, including all homes and passwords. Only for a single account on a machine that "
        "nobody else uses.",
    )
    first_uid: Uid = Field(
        1_900_000_000,
        description="First user id for workspaces if CodeHub runs as root; each workspace gets its own.",
    )
    uid_count: Count = Field(65_536, description="Number of user ids for workspaces.")
    memory_bytes: Count = Field(
        2_147_483_648,
        description="Memory limit: per workspace if CodeHub runs as root, otherwise per process.",
    )
    cpus: Cpus = Field(2.0, description="CPU limit per workspace; applies only if CodeHub runs as root.")
    processes: Count = Field(1024, description="Limit of processes and threads per workspace.")
    disk_bytes: Bytes = Field(
        20_000_000_000,
        description="Disk space that a workspace may use; above it, it does not start. 0 means no limit.",
    )


class Docker(Concern):
    """Docker, for the backend `local-docker`."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_DOCKER_")

    url: DockerUrl = Field("unix:///var/run/docker.sock", description="URL of the Docker engine.")
    project: Label = Field("codehub", description="Label that separates installations that share an engine.")
    egress: Literal["gateway", "direct"] = Field(
        "gateway",
        description="The way out of workspaces: `gateway` is the egress gateway, without any network; "
        "`direct` is the network below, to which no policy applies and from which the host can be reached.",
    )
    network: Label = Field(
        "codehub-workspaces",
        description="Docker network of workspaces with `direct`; they cannot reach each other.",
    )
    sockets: Directory | None = Field(
        None,
        description="Directory for the UNIX sockets of IDEs, which only CodeHub can enter; the engine must "
        "be on this machine and see it at the same path. Unset means `docker/sockets` in the data directory.",
    )
    publish_ports: Switch = Field(
        False,
        description="Publish the ports of IDEs on 127.0.0.1 instead of using sockets: every user of the "
        "host can connect to them, and only a secret keeps them out. For Docker Desktop and "
        "for images without CodeHub's agent; needs `direct`.",
    )
    memory_bytes: Count = Field(2_147_483_648, description="Memory limit per workspace.")
    cpus: Cpus = Field(2.0, description="CPU limit per workspace.")
    pids: Count = Field(1024, description="Limit of processes and threads per workspace.")
    start_seconds: StepSeconds = Field(60, description="How long an IDE may take to become ready.")
    stop_seconds: StepSeconds = Field(10, description="How long an IDE may take to exit before it is killed.")
    job_image: str = Field("codehub-storage-job:latest", description="Image of the storage jobs.")
    job_network: Label | None = Field(
        None,
        description="Network of the storage jobs; unset means the host's network if S3 is on loopback, "
        "otherwise Docker's default.",
    )
    job_memory_bytes: Count = Field(536_870_912, description="Memory limit per storage job.")

    @field_validator("publish_ports")
    @classmethod
    def _has_a_network(cls, publish_ports: bool, info: ValidationInfo) -> bool:
        if publish_ports and info.data.get("egress") != "direct":
            raise PydanticCustomError(CONFLICT, "must be unset unless CODEHUB_DOCKER_EGRESS is direct")
        return publish_ports


class Kubernetes(Concern):
    """Kubernetes, for the backend `k8s`."""

    model_config = SettingsConfigDict(env_prefix="CODEHUB_KUBERNETES_")

    kubeconfig: FilePath | None = Field(
        None,
        description="Kubeconfig file of the cluster; unset means the service account of this Pod, "
        "otherwise the file of KUBECONFIG.",
    )
    namespace: NamespaceName = Field(
        "codehub-workspaces", description="Namespace of the workspaces; nothing else should be in it."
    )
    project: NamespaceName = Field(
        "codehub", description="Label that separates installations in one namespace."
    )
    storage_class: ObjectName | None = Field(
        None, description="Storage class of new homes; unset means the default class of the cluster."
    )
    volume_bytes: Count = Field(
        10_737_418_240,
        description="Size of a home's volume; a smaller volume grows at the next start if its class can.",
    )
    access_mode: Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"] = Field(
        "ReadWriteOnce", description="Access mode of new homes."
    )
    memory_bytes: Count = Field(2_147_483_648, description="Memory limit per workspace.")
    cpus: Cpus = Field(2.0, description="CPU limit per workspace.")
    requested_memory_bytes: Count = Field(
        536_870_912, description="Memory that a node reserves per workspace."
    )
    requested_cpus: Cpus = Field(0.1, description="CPUs that a node reserves per workspace.")
    temporary_bytes: Count = Field(
        10_737_418_240,
        description="Disk space outside the home, such as /tmp; a workspace that uses more is evicted.",
    )
    node_selector: LabelMap = Field({}, description="Labels of the nodes that may run workspaces.")
    tolerations: ObjectList = Field((), description="Tolerations of workspaces, as in a Pod.")
    runtime_class: ObjectName | None = Field(
        None, description="Runtime class of workspaces, such as one of gVisor; unset means the default."
    )
    priority_class: ObjectName | None = Field(
        None, description="Priority class of workspaces; unset means the default of the cluster."
    )
    image_pull_secrets: ObjectNames = Field(
        (), description="Names of the image pull secrets in the namespace of the workspaces."
    )
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = Field(
        "IfNotPresent", description="Image pull policy."
    )
    image_labels: LabelsByImage = Field(
        {},
        description="Labels of images that are not built on CodeHub's own, by name without tag: "
        "Kubernetes does not report labels.",
    )
    egress_address: Address | None = Field(
        None,
        description="host:port of the egress gateway for workspaces; unset means that they use the network "
        "of the cluster, as far as network policies allow.",
    )
    launch_seconds: StepSeconds = Field(
        600, description="How long scheduling, the disk and the image of a starting workspace may take."
    )
    start_seconds: StepSeconds = Field(60, description="How long its IDE may then take to become ready.")
    stop_seconds: StepSeconds = Field(10, description="How long an IDE may take to exit before it is killed.")
    force_seconds: StepSeconds = Field(
        300,
        description="How long a node may take to report the end of a workspace before its Pod is deleted "
        "by force; with ReadWriteMany, two instances may briefly use a home if the node "
        "comes back.",
    )
    pull_failure_seconds: StepSeconds = Field(
        15, description="How long image pulls may fail before the start fails."
    )
    job_image: str = Field("codehub-storage-job:latest", description="Image of the storage jobs.")
    job_memory_bytes: Count = Field(536_870_912, description="Memory limit per storage job.")
