"""What every route needs: the library, the words and templates, the assets, the open streams. One for an app."""

import asyncio
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from harness.library import Library
from web.assets import Asset
from web.channel import Channels
from web.pages import Pages
from web.settings import WebSettings


@dataclass(frozen=True, slots=True)
class Site:
    """Made once in `create_app`. `creating` keeps two first visitors from making two first sessions."""

    library: Library
    settings: WebSettings
    pages: Pages
    assets: tuple[Asset, ...]
    channels: Channels
    creating: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def script_addresses(self) -> tuple[str, ...]:
        """Return the addresses on other hosts from which the page may take a script."""
        return () if self.settings.offline_assets else tuple(asset.address for asset in self.assets)


def site_of(request: HTTPConnection) -> Site:
    """Return the site that answers this request."""
    return request.app.state.site
