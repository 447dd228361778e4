"""Renders templates: a whole page, or one block of it, so that a fragment is never a second file.

Knows no sessions. Autoescape is on and a name that a template does not get is an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.discovery import Lab
from web.catalogue import load_all
from web.lab_text import LabTexts
from web.words import Language, Words

TEMPLATES = Path(__file__).parent.parent / "templates"


@dataclass(frozen=True, slots=True)
class Pages:
    """The templates, the words and the labs' texts. Built once for an app and shared by all of its viewers.

    labs: those with an extension, by number, which a session can switch on.
    """

    environment: Environment
    words: Mapping[Language, Words]
    texts: LabTexts = field(default_factory=LabTexts)
    labs: Mapping[str, Lab] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path = TEMPLATES, labs: Mapping[str, Lab] = MappingProxyType({})) -> "Pages":
        """Read both catalogues and open the folder of templates."""
        environment = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        extensions = {number: lab for number, lab in labs.items() if (lab.folder / "extension.py").is_file()}
        return cls(environment, load_all(), labs=extensions)

    def page(self, name: str, context: Mapping[str, object]) -> str:
        """Return the whole template `name`."""
        return self.environment.get_template(name).render(context)

    def block(self, name: str, block: str, context: Mapping[str, object]) -> str:
        """Return one block of the template `name`, also one that stands inside another block."""
        template = self.environment.get_template(name)
        return "".join(template.blocks[block](template.new_context(dict(context)))).strip()
