"""Text layout of the command lines."""

import textwrap


def wrap_labelled(label: str, text: str, width: int) -> str:
    """Return ``label`` and ``text``, wrapped between words to ``width`` and indented below the text."""
    return textwrap.fill(
        text,
        width=max(width, len(label) + 20),
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )
