"""The servers of the control plane: etcd, API server, controllers, scheduler, provisioner of volumes."""

import sys
from pathlib import Path

from testkit.kubernetes import binaries
from testkit.kubernetes import credentials as users
from testkit.kubernetes.credentials import Credentials
from testkit.kubernetes.network import Network

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
PROVISIONER = "testkit.kubernetes.provisioner"
# They need the API server when they start.
CLIENTS = (CONTROLLER_MANAGER, SCHEDULER, PROVISIONER)

ETCD_URL = "http://127.0.0.1:2379"
PORT = 6443
# A node that has been silent for this long is lost; the default is 40 s.
NODE_GRACE_SECONDS = 10
# Controllers and scheduler may send as much as they need.
UNTHROTTLED = ("--kube-api-qps=1000", "--kube-api-burst=2000")
LOCAL_ONLY = ("--leader-elect=false", "--port=0", "--bind-address=127.0.0.1")
# In the directory of the control plane. If the policy exists, the API server logs the requests that it names.
AUDIT_POLICY = "audit-policy.json"
AUDIT_LOG = "audit.jsonl"


def url(network: Network) -> str:
    return f"https://{network.control_plane}:{PORT}"


def addresses(network: Network) -> tuple[str, str]:
    """Return the addresses of the API server: its own and that of its Service."""
    return network.control_plane, str(network.services[1])


def commands(
    directory: Path, network: Network, credentials: Credentials
) -> dict[str, tuple[str | Path, ...]]:
    return {
        ETCD: _etcd(directory),
        API_SERVER: (*_api_server(network, credentials), *_audit(directory)),
        CONTROLLER_MANAGER: _controller_manager(credentials),
        SCHEDULER: (
            binaries.built(SCHEDULER),
            f"--kubeconfig={credentials.kubeconfig(users.SCHEDULER)}",
            *LOCAL_ONLY,
            *UNTHROTTLED,
        ),
        PROVISIONER: (
            sys.executable,
            "-m",
            PROVISIONER,
            credentials.kubeconfig(users.ADMIN),
            directory / "volumes",
        ),
    }


def _etcd(directory: Path) -> tuple[str | Path, ...]:
    return (
        binaries.etcd(),
        f"--data-dir={directory}/etcd",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        # A killed etcd loses nothing without it; only a power failure would.
        "--unsafe-no-fsync",
    )


def _api_server(network: Network, credentials: Credentials) -> tuple[str | Path, ...]:
    signing_key = credentials.key("service-accounts")
    return (
        binaries.built(API_SERVER),
        f"--etcd-servers={ETCD_URL}",
        f"--bind-address={network.control_plane}",
        f"--advertise-address={network.control_plane}",
        f"--secure-port={PORT}",
        f"--service-cluster-ip-range={network.services}",
        f"--tls-cert-file={credentials.certificate('api-server')}",
        f"--tls-private-key-file={credentials.key('api-server')}",
        f"--client-ca-file={credentials.authority}",
        f"--token-auth-file={credentials.tokens}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={signing_key}",
        f"--service-account-signing-key-file={signing_key}",
        f"--kubelet-client-certificate={credentials.certificate('kubelet-client')}",
        f"--kubelet-client-key={credentials.key('kubelet-client')}",
        "--kubelet-preferred-address-types=InternalIP",
        "--feature-gates=TTLAfterFinished=true",
    )


def _audit(directory: Path) -> tuple[str, ...]:
    policy = directory / AUDIT_POLICY
    if not policy.exists():
        return ()
    return (f"--audit-policy-file={policy}", f"--audit-log-path={directory / AUDIT_LOG}")


def _controller_manager(credentials: Credentials) -> tuple[str | Path, ...]:
    return (
        binaries.built(CONTROLLER_MANAGER),
        f"--kubeconfig={credentials.kubeconfig(users.CONTROLLER_MANAGER)}",
        f"--service-account-private-key-file={credentials.key('service-accounts')}",
        f"--root-ca-file={credentials.authority}",
        "--use-service-account-credentials",
        "--node-monitor-period=1s",
        f"--node-monitor-grace-period={NODE_GRACE_SECONDS}s",
        "--pvclaimbinder-sync-period=2s",
        "--feature-gates=TTLAfterFinished=true",
        *LOCAL_ONLY,
        *UNTHROTTLED,
    )
