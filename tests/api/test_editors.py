"""The IDEs that a new workspace can be created with."""

from api.security.access import API
from codehub.providers import Editors, editors_of
from codehub.settings import load_settings
from tests.api.harness import ApiHarness


async def test_the_local_backend_offers_the_installed_ides(shared_harness: ApiHarness) -> None:
    person = await shared_harness.person()
    response = await person.client.get(f"{API}/editors")
    assert response.status_code == 200
    body = response.json()
    names = [each["image_ref"] for each in body["items"]]
    assert "jupyterlab" in names
    assert [each["image_ref"] for each in body["items"] if each["default"]] == names[:1]
    assert body["other_images"] is False


def test_the_docker_backend_offers_the_configured_image_and_allows_others() -> None:
    environment = {
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker",
        "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": "team/ide:2",
    }
    assert editors_of(load_settings(environment)) == Editors(("team/ide:2",), "team/ide:2", other_images=True)
