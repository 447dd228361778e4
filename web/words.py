"""The words of the page in one language, and how it writes numbers and units.

Knows no pages. What comes in as a value is untrusted and is escaped; only `Markup` passes as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
Entry = str | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Words:
    """One language of the catalogue. An entry is a text, or two: for one thing and for another number of them."""

    language: Language
    entries: Mapping[str, Entry]

    def t(self, key: str, **values: object) -> Markup:
        """Return the text `key`, its placeholders filled: t("unit.characters", n=1500). KeyError: no such key."""
        entry = self.entries[key]
        if not isinstance(entry, str):
            entry = entry["one" if values.get("n") == 1 else "other"]
        return Markup(escape(entry)).format(**{name: self._shown(value) for name, value in values.items()})

    def code(self, section: str, code: str, **values: object) -> Markup:
        """Return the text of a code from an event; a code without a text is shown as it is."""
        key = f"{section}.{code}"
        return self.t(key, **values) if key in self.entries else escape(code)

    def has(self, section: str, code: str) -> bool:
        """Say whether there is a text for this code."""
        return f"{section}.{code}" in self.entries

    def number(self, value: float) -> str:
        """Return a number with grouped thousands: 1500 -> "1,500". Both languages write it so."""
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"

    def quantity(self, n: int | Markup, unit: str) -> Markup:
        """Return a number with its unit: "characters", "tokens", "estimated" or "reported" (tokens)."""
        return self.t(f"unit.{unit}", n=n)

    def seconds(self, seconds: float) -> Markup:
        """Return a duration: 0.004 -> "4 ms", 0.41 -> "0.4 s", 75 -> "75 s"."""
        if seconds < 0.0995:
            return self.t("unit.milliseconds", n=max(1, round(seconds * 1000)))
        return self.t("unit.seconds", n=round(seconds, 1) if seconds < 10 else round(seconds))

    def percent(self, part: float, whole: float) -> Markup:
        """Return a share: percent(21, 100) -> "21 %"; a part too small for one percent is "<1 %"."""
        share = 100 * part / whole if whole else 0
        return self.t("unit.percent", n="<1" if 0 < share < 1 else round(share))

    def figure(self, name: str, value: int | float | None) -> Markup:
        """Return a number as an element that tests and extensions find by `name`; None is "unknown"."""
        shown = self.t("unit.unknown") if value is None else escape(self.number(value))
        raw = "" if value is None else value
        return Markup('<b class="figure" data-figure="{}" data-value="{}">{}</b>').format(name, raw, shown)

    def counted(self, name: str, value: int | None, unit: str) -> Markup:
        """Return a figure with its unit, in the right number: one character, two characters."""
        if value is None:
            return self.t("unit.of_unknown", n=self.figure(name, None), unit=self.t(f"unit_name.{unit}"))
        entry = self.entries[f"unit.{unit}"]
        text = entry if isinstance(entry, str) else entry["one" if value == 1 else "other"]
        return Markup(escape(text)).format(n=self.figure(name, value))

    def _shown(self, value: object) -> object:
        return self.number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def language_of(text: str) -> str:
    """Return the tag for a text's `lang` by its script: "zh-CN" when a tenth of its letters are Han, else "en"."""
    letters = [char for char in text[:2000] if char.isalpha()]
    han = sum("\u4e00" <= char <= "\u9fff" for char in letters)
    return "zh-CN" if han * 10 > len(letters) else "en"
