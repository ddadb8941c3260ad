"""The exception for what is not differentiated."""

from metalloid.msl.portable.syntax_tree import SourceLocation


class Refused(Exception):
    """Something that is not differentiated, and where it is."""

    def __init__(self, location: SourceLocation | None, why: str) -> None:
        super().__init__(why)
        self.location, self.why = location, why
