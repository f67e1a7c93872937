"""What goes over the wire of a live stream: server-sent events, encoded once for everybody."""

from dataclasses import dataclass

RETRY_MILLISECONDS = 2000


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event; its id is what the browser sends back as Last-Event-ID."""

    event: str
    data: str
    id: str | None = None
    retry: int | None = None

    def encode(self) -> bytes:
        lines = [f"event: {self.event}"]
        if self.id is not None:
            lines.append(f"id: {self.id}")
        if self.retry is not None:
            lines.append(f"retry: {self.retry}")
        # A line break would end the field; in JSON it can only be white space between tokens.
        lines += [f"data: {part}" for part in self.data.replace("\r", "\n").split("\n")]
        return ("\n".join(lines) + "\n\n").encode()


# Without an id, so that the browser keeps the last one.
HEARTBEAT = Frame("heartbeat", "{}").encode()
UNCHANGED = Frame("heartbeat", "{}", retry=RETRY_MILLISECONDS).encode()


def goodbye(retry_milliseconds: int) -> bytes:
    """The last words of a server that stops: not an event, only when to come back."""
    return f": goodbye\nretry: {retry_milliseconds}\n\n".encode()
