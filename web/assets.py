"""The scripts that are not ours: where they come from, and which bytes they must be. Reads the manifest only."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

STATIC = Path(__file__).parent.parent / "static"
VENDOR = STATIC / "vendor"
# Set by the page's loader when the other host could not be had: then later pages do not wait for it.
LOCAL_COOKIE = "context-lab-assets"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file. `sha384` in base64 as `integrity` wants it; `address` is the pinned one on another host."""

    file: str
    version: str
    sha384: str
    address: str
    licence: str
    licence_file: str

    def described(self, *, local: bool) -> dict[str, str]:
        """Return what the page's loader must know; without `address` it takes the local file at once."""
        found = {"file": f"/static/vendor/{self.file}", "integrity": f"sha384-{self.sha384}"}
        return found if local else found | {"address": self.address}


def load(folder: Path = VENDOR) -> tuple[Asset, ...]:
    """Return the assets in the order in which they must run."""
    table = tomllib.loads((folder / "manifest.toml").read_text("utf-8"))
    return tuple(Asset(**entry) for entry in table["asset"])


def describe(assets: tuple[Asset, ...], *, local: bool) -> str:
    """Return the JSON that the page hands to its loader."""
    return json.dumps([asset.described(local=local) for asset in assets])
