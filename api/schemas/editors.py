"""What a workspace can be opened with."""

from pydantic import ConfigDict, Field

from api.schemas.base import Document


class Editor(Document):
    """One choice for a new workspace."""

    image_ref: str = Field(description="What to send as `image_ref`.")
    default: bool = Field(description="What a workspace that names none gets.")


class EditorList(Document):
    """All choices."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "items": [
                    {"image_ref": "code-server", "default": True},
                    {"image_ref": "jupyterlab", "default": False},
                ],
                "other_images": False,
            }
        }
    )

    items: list[Editor]
    other_images: bool = Field(description="Whether `image_ref` may also name an image of one's own.")
