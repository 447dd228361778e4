"""Fixtures that every test may use. They start nothing until a test asks for them."""

from hypothesis import settings

from tests.browser_support import axe, chromium, page, tabs

__all__ = ["axe", "chromium", "page", "tabs"]

# A busy machine is no fault of the code: no test here is about time.
settings.register_profile("lab", deadline=None)
settings.load_profile("lab")
