"""The pages that people see while a workspace has no IDE to show."""

from proxy.pages.pages import Pages, Visit

__all__ = ["Pages", "Visit"]
