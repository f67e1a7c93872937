"""Signing in through an identity provider."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from api.schemas.base import Document, Form, Text


class SignInOptions(Document):
    """How people can sign in here."""

    provider: str | None = Field(description="Name of the identity provider; `null` if there is none.")
    passwords: Literal["everyone", "administrators"] = Field(description="Who may sign in with a password.")


class BeginSignIn(Form):
    """A sign-in through the identity provider."""

    model_config = ConfigDict(json_schema_extra={"example": {"next": "/account"}})

    next: Annotated[str, StringConstraints(max_length=2000), Text] = Field(
        "/", description="The page to open afterwards."
    )
    fresh: bool = Field(
        False, description="Authenticate again at the provider, instead of entering a password."
    )


class SignInBegun(Document):
    """Where the browser continues."""

    url: str
