"""Words that people may send."""

from typing import Annotated, Final

from pydantic import StringConstraints

PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*$"  # no NUL, which PostgreSQL refuses, and no line ends
PrintableText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=PRINTABLE)]
