"""The attempts that are known to succeed in the weaker origin modes; see docs/security.md."""

# All ports of a host share its cookies.
PORT_MODE = frozenset({
    "session evicted by an overflow of the jar",
    "session made ambiguous by a second one",
})  # fmt: skip
# All pages share one origin.
PATH_MODE = frozenset({
    "90-day token, as a notebook cell made one",
    "EventSource",
    "EventSource of a neighbor",
    "WebSocket to a neighbor",
    "address changed with pushState",
    "change that sends the origin only",
    "change with keepalive",
    "change with the referrer /",
    "fetch from a neighbor",
    "fetch from a neighbor without a referrer",
    "fetch from the cache",
    "fetch in mode same-origin",
    "fetch that sends the origin only",
    "fetch with the referrer /",
    "form to a neighbor",
    "frame with a document of its own",
    "framed neighbor",
    "image of a neighbor",
    "opened neighbor",
    "preloaded page of a neighbor",
    "request made by a service worker",
    "request to a neighbor in mode no-cors",
    "script in a neighbor's window",
    "script of a neighbor",
    "session evicted by an overflow of the jar",
    "session made ambiguous by a second one",
    "sign-in as Mallory by fetch",
    "style sheet of a neighbor",
    "window of its own at the dashboard's address",
    "worker",
})  # fmt: skip
