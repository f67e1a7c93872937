"""The allow-list of images."""

import pytest

from codehub.domain.images import AllowedImages, allowed_images

OURS = AllowedImages(("codehub-workspace", "registry.example/acme/*", "registry.example:5000/team/ide:2"))


@pytest.mark.parametrize(
    "image",
    [
        "codehub-workspace",
        "codehub-workspace:latest",
        "codehub-workspace@sha256:abc",
        "codehub-workspace:1@sha256:abc",
        "registry.example/acme/python:3",
        "registry.example/acme/tools/python",
        "registry.example:5000/team/ide:2",
    ],
)
def test_an_image_on_the_list_is_allowed(image: str) -> None:
    assert OURS.includes(image)


@pytest.mark.parametrize(
    "image",
    [
        "",
        "evil",
        "codehub-workspace-evil",
        "codehub-workspace/evil",
        "codehub-workspace:5000/evil",
        "evil/codehub-workspace",
        "evil.example/codehub-workspace:latest",
        "registry.example/acmeevil/python",
        "evil.example/registry.example/acme/python",
        "registryXexample/acme/python",
        "registry.example:5000/team/ide",
        "registry.example:5000/team/ide:3",
        "sha256:0123456789abcdef",
    ],
)
def test_any_other_image_is_not(image: str) -> None:
    assert not OURS.includes(image)


def test_a_list_has_no_blanks_or_repetitions() -> None:
    assert allowed_images(["a", " a ", "", "b/*"]) == AllowedImages(("a", "b/*"))
    assert OURS.describe() == "codehub-workspace, registry.example/acme/*, registry.example:5000/team/ide:2"
