"""The second factor of local accounts."""

from pydantic import ConfigDict, Field

from api.schemas.base import Document, Form, OneTimeCode, Timestamp


class AuthenticatorView(Document):
    """Whether sign-ins ask for a code."""

    available: bool = Field(description="False if the account signs in through an identity provider.")
    enabled_at: Timestamp | None = Field(
        description="When it was enabled; `null` if sign-ins do not ask for a code."
    )
    recovery_codes_left: int
    required: bool = Field(description="Whether administrators must have one here.")


class EnableAuthenticator(Form):
    """A code that the app shows now."""

    model_config = ConfigDict(json_schema_extra={"example": {"code": "492039"}})

    code: OneTimeCode


class QrCodeView(Document):
    """A QR code as the path of an SVG image."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    size: int = Field(description="Width and height of the image, quiet zone included.")
    path: str


class AuthenticatorSecret(Document):
    """What an authenticator app needs, shown only once."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    secret: str = Field(description="For apps that cannot scan.")
    uri: str
    qr_code: QrCodeView


class RecoveryCodes(Document):
    """Codes that replace a lost app, each for one sign-in; shown only once."""

    codes: list[str]
