"""Which images the settings allow."""

import pytest

from codehub.policy import allowed_images_of
from codehub.settings import load_settings

DOCKER = {"CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker"}


@pytest.mark.parametrize(
    ("environment", "allowed", "refused"),
    [
        (
            DOCKER,
            ["codehub-workspace:latest", "codehub-workspace:0.3"],
            ["evil", "registry.example/acme/ide"],
        ),
        (
            {**DOCKER, "CODEHUB_WORKSPACES_ALLOWED_IMAGES": "registry.example/acme/*, team/ide"},
            ["codehub-workspace:latest", "registry.example/acme/ide:1", "team/ide:2"],
            ["codehub-workspace:0.3", "evil"],
        ),
        ({**DOCKER, "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": "mine:1"}, ["mine:1"], ["mine:2", "evil"]),
        ({}, ["default", "jupyterlab"], ["codehub-workspace", "evil"]),
    ],
    ids=["ours by default", "a list", "another default image", "installed IDEs"],
)
def test_images_come_from_the_list(
    environment: dict[str, str], allowed: list[str], refused: list[str]
) -> None:
    images = allowed_images_of(load_settings(environment))
    assert [each for each in allowed + refused if images.includes(each)] == allowed
