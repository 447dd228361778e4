"""What a text says that can be compared word for word: paths, names, numbers, commands, errors, demands."""

from harness.facts.extract import Fact, Kind, facts_in

__all__ = ["Fact", "Kind", "facts_in"]
