"""Storage jobs as throw-away Pods."""
