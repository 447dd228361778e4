"""Fixtures that every test may use. They start nothing until a test asks for them."""

from tests.browser_support import axe, chromium, page, tabs

__all__ = ["axe", "chromium", "page", "tabs"]
