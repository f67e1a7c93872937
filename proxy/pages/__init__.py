"""What a person sees where an IDE is not, or not yet."""

from proxy.pages.pages import Pages
from proxy.pages.visit import Site, Visit

__all__ = ["Pages", "Site", "Visit"]
