"""Writes what images and the installation from PyPI consist of, as CycloneDX documents.

Usage: sbom.py VERSION DIRECTORY IMAGE...
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)
# Runs inside an image, with its own Python, and prints [kind, name, version] of every package.
INSPECTION = """
import importlib.metadata, json, os, subprocess
found = [["pypi", each.name, each.version] for each in importlib.metadata.distributions() if each.name]
listed = subprocess.check_output(("dpkg-query", "-W", "-f", "${Package} ${Version}\\n"), text=True)
found += [["deb", *line.split()] for line in listed.splitlines()]
for directory, _, files in os.walk("/opt"):
    if "package.json" in files and "/node_modules/" in directory:
        try:
            with open(os.path.join(directory, "package.json")) as file:
                package = json.load(file)
        except ValueError:
            continue
        if isinstance(package.get("name"), str) and isinstance(package.get("version"), str):
            found.append(["npm", package["name"], package["version"]])
print(json.dumps(found))
"""
Package = tuple[str, str, str]


def packages_of_image(image: str) -> list[Package]:
    restricted = ("--rm", "--network", "none", "--read-only", "--cap-drop", "ALL")
    command = ("docker", "run", *restricted, "--entrypoint", "python3", image, "-c", INSPECTION)
    run = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (our own images)
    return [tuple(each) for each in json.loads(run.stdout)]


def packages_of_lock(lock: Path) -> list[Package]:
    return [("pypi", name, version) for name, version in PINNED.findall(lock.read_text())]


def document(kind: str, name: str, version: str, packages: Iterable[Package]) -> dict[str, object]:
    """Return a CycloneDX document; the same packages always give the same text."""
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": kind, "name": name, "version": version}},
        "components": [_component(*package) for package in sorted(set(packages))],
    }


def _component(kind: str, name: str, version: str) -> dict[str, str]:
    namespace = "deb/debian" if kind == "deb" else kind
    purl = f"pkg:{namespace}/{quote(name, safe='/')}@{quote(version, safe='')}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def main(version: str, directory: Path, images: list[str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    documents = {"codehub": document("library", "codehub", version, _runtime())}
    for image in images:
        documents[image] = document("container", image, version, packages_of_image(f"{image}:latest"))
    for name, content in documents.items():
        (directory / f"{name}.cdx.json").write_text(json.dumps(content, indent=2) + "\n")


def _runtime() -> list[Package]:
    return packages_of_lock(ROOT / "requirements/runtime.lock")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
