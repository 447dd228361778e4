"""What a user must mend before the work can go on: one line, in the user's language.

An exception carries a code and the values that fill its line; the words stand in the catalogue.
"""


class Problem(Exception):
    """Something that a user must mend. `code` names the catalogue's line `problem.<code>`."""

    def __init__(self, code: str, **values: object) -> None:
        super().__init__(code, values)
        self.code, self.values = code, values
