"""The rights that workers need; those of the API and the proxy are some of them."""

from dataclasses import dataclass

EVERYTHING = ("create", "delete", "get", "list", "patch", "watch")
# The verbs for objects of any name in the namespace of the workspaces.
IN_NAMESPACE = {
    "pods": EVERYTHING,
    "persistentvolumeclaims": EVERYTHING,
    "pods/log": ("get",),
    "secrets": ("create", "delete"),
    "events": ("list",),
    "configmaps": ("create",),
}
# To tell a lost node from a lost home, and to keep the volume of a lost node. Both are in no namespace.
IN_CLUSTER = {"nodes": ("get", "list"), "persistentvolumes": ("get", "patch")}


@dataclass(frozen=True)
class Right:
    """One verb for the objects of a resource of the core group; without a name, for all of them."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verb, self.resource, self.name)))


def namespace_rights(namespace: str, marker: str) -> list[Right]:
    """Return the rights without which workers cannot work; the marker identifies the home store."""
    return [
        *(Right(verb, resource, namespace) for resource, verbs in IN_NAMESPACE.items() for verb in verbs),
        Right("get", "configmaps", namespace, marker),
        Right("get", "namespaces", namespace, namespace),
    ]


def cluster_rights() -> list[Right]:
    """Return the rights without which workers do not notice, or cannot give up, a home on a lost node."""
    return [Right(verb, resource) for resource, verbs in IN_CLUSTER.items() for verb in verbs]
