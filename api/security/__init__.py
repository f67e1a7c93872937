"""Who is asking, and what they may do: checked before any route runs."""
