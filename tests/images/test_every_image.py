"""No image has a compiler or anything of the machine that built it."""

import json
from pathlib import Path

from testkit.docker_engine import docker
from tests.images.inspection import as_root, configuration, labels, programs, shell

BUILD_TOOLS = ("cc", "gcc", "g++", "c++", "clang", "make", "ld", "node-gyp", "uv")
FOREIGN_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY")
# Where Debian keeps additional certificates.
OWN_AUTHORITIES = Path("/usr/local/share/ca-certificates")


def test_an_image_has_no_compiler(image: str) -> None:
    assert programs(image, *BUILD_TOOLS) == []


def test_the_labels_describe_the_image(image: str) -> None:
    found = labels(image)
    for name in ("title", "description", "licenses", "version"):
        assert found[f"org.opencontainers.image.{name}"]
    assert found["org.opencontainers.image.version"] != "dev"


def test_no_variable_comes_from_the_machine_that_built_it(image: str) -> None:
    names = [variable.partition("=")[0] for variable in configuration(image)["Env"]]
    assert [name for name in names if name.upper() in FOREIGN_VARIABLES] == []


def test_no_step_of_the_history_has_a_certificate(image: str) -> None:
    lines = docker("history", "--no-trunc", "--format", "{{json .CreatedBy}}", image).splitlines()
    history = [json.loads(line) for line in lines]
    assert history
    assert [step for step in history if "BEGIN CERTIFICATE" in step] == []


def test_no_secret_is_left_in_the_files(image: str) -> None:
    assert as_root(image, "find /run/secrets /build -type f 2>/dev/null; true") == ""


def test_an_image_trusts_only_the_authorities_of_debian(image: str) -> None:
    # The authority of the build machine would be in no package.
    assert shell(image, "find /usr/local/share/ca-certificates -type f") == ""
    bundle = shell(image, "cat /etc/ssl/certs/ca-certificates.crt")
    packaged = shell(image, "cat $(find /usr/share/ca-certificates -name '*.crt')")
    assert _certificates(bundle) <= _certificates(packaged)


def test_no_file_holds_an_authority_of_the_machine_that_built_it(image: str) -> None:
    authorities = [file.read_text() for file in OWN_AUTHORITIES.rglob("*.crt")]
    patterns = "\n".join(text.splitlines()[1] for text in authorities)
    places = "/bin /boot /etc /home /lib /opt ~root /run /srv /usr /var"
    assert patterns == "" or as_root(image, f"grep -rlF '{patterns}' {places}; true") == ""


def test_an_image_has_no_caches(image: str) -> None:
    places = "/var/lib/apt/lists /var/cache/apt ~root/.npm ~root/.cache"
    assert as_root(image, f"find {places} -type f -not -name lock 2>/dev/null; true") == ""


def _certificates(text: str) -> set[str]:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    parts = [part.partition(end)[0] for part in text.split(begin)[1:]]
    return {"".join(part.split()) for part in parts}
