"""Faults of a Kubernetes cluster: servers end or freeze, a node loses power, others remove Pods."""

import asyncio
from contextlib import suppress
from random import Random

from gameday.faults.fault import NothingToBreak
from gameday.faults.workspaces import choose_instance, choose_job
from gameday.stage.kubernetes import KubernetesBackend
from gameday.stage.recoveries import Recovery
from gameday.stage.stage import Stage

CONTROL_PLANE = ("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler")
NODE_SERVERS = ("kubelet", "containerd")
# Without them, the API does not respond.
NEEDED_BY_ALL = frozenset({"kube-apiserver", "etcd"})
# A server that is killed during every start never becomes ready.
RESTART_SECONDS = 30.0
POLL_SECONDS = 0.5
SHORTEST_FREEZE_SECONDS, LONGEST_FREEZE_SECONDS = 1.0, 12.0
# The cluster notices a silent node after 10 s.
SHORTEST_POWER_SECONDS, LONGEST_POWER_SECONDS = 2.0, 25.0


async def kill_server(stage: Stage, backend: KubernetesBackend, server: str, random: Random) -> str:
    """Kill a server; whoever operates the cluster starts it again at once."""
    where = _choose_machine(backend, server, random)
    _require_api(backend, server)
    with backend.cluster.breaking(server):
        began = stage.clock()
        await backend.cluster.request("kill", server, *where)
        if server in NEEDED_BY_ALL and await _wait_for_api(backend):
            stage.recoveries.append(Recovery(server, began, stage.clock() - began))
    return f"kill -9 of {' on '.join((server, *where))}"


async def freeze_server(backend: KubernetesBackend, server: str, random: Random) -> str:
    """Stop a server for seconds: its connections stay open, but nobody answers."""
    seconds = random.uniform(SHORTEST_FREEZE_SECONDS, LONGEST_FREEZE_SECONDS)
    where = _choose_machine(backend, server, random)
    _require_api(backend, server)
    with backend.cluster.breaking(server):
        try:
            await backend.cluster.request("freeze", server, *where)
            await asyncio.sleep(seconds)
        finally:
            await backend.cluster.request("thaw", server, *where)
    return f"SIGSTOP of {' on '.join((server, *where))} for {seconds:.1f} s"


async def fail_node(backend: KubernetesBackend, random: Random) -> str:
    """Take the power of a node: its servers and Pods end at once, and its disk is back with it."""
    seconds = random.uniform(SHORTEST_POWER_SECONDS, LONGEST_POWER_SECONDS)
    node = random.choice(backend.cluster.description.nodes)
    if set(backend.cluster.description.nodes) & set(backend.cluster.broken):
        raise NothingToBreak("a node was already without power")
    with backend.cluster.breaking(node):
        try:
            await backend.cluster.request("stop-node", node)
            await asyncio.sleep(seconds)
        finally:
            await backend.cluster.request("start-node", node)
    return f"{node} was without power for {seconds:.1f} s"


async def evict_instance(stage: Stage, backend: KubernetesBackend, random: Random) -> str:
    workspace_id, name = await choose_instance(stage, random)
    await backend.evict(name)
    return f"eviction of the Pod {name} of {workspace_id}"


async def remove_job(stage: Stage, backend: KubernetesBackend, random: Random) -> str:
    job = await choose_job(stage, random)
    await backend.remove_instance(job)
    return f"removal of the Pod {job} of a storage job"


def _choose_machine(backend: KubernetesBackend, server: str, random: Random) -> tuple[str, ...]:
    """Return the node of a server, or nothing for one of the control plane."""
    if server not in NODE_SERVERS:
        return ()
    node = random.choice(backend.cluster.description.nodes)
    if node in backend.cluster.broken:
        raise NothingToBreak(f"{node} was without power")
    return (node,)


def _require_api(backend: KubernetesBackend, server: str) -> None:
    """Do not break what is broken, nor the API again before it is back: then nothing would happen."""
    broken = set(backend.cluster.broken)
    if server in broken or (server in NEEDED_BY_ALL and broken & NEEDED_BY_ALL):
        raise NothingToBreak(f"{server} was already broken")


async def _wait_for_api(backend: KubernetesBackend) -> bool:
    """Return whether the API server responds again; not for ever, because other faults may prevent it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(RESTART_SECONDS):
            while not await backend.responds():  # noqa: ASYNC110 (there is no event to wait for)
                await asyncio.sleep(POLL_SECONDS)
            return True
    return False
