"""A file on its way to the service, piece by piece, telling how far it is."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 20


class Upload:
    """Bytes of a path, an open file or memory; ``on_progress`` gets the number sent so far.

    ``before`` is sent before them and is not counted.
    """

    def __init__(
        self,
        source: Path | BinaryIO | bytes,
        on_progress: Callable[[int], None] | None = None,
        before: bytes = b"",
    ) -> None:
        self._source, self._on_progress, self._before = source, on_progress, before

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        if self._before:
            yield self._before
        with self._opened() as file:
            while piece := file.read(_PIECE):
                yield piece
                sent += len(piece)
                if self._on_progress is not None:
                    self._on_progress(sent)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        if isinstance(self._source, Path):
            return self._source.open("rb")
        return nullcontext(BytesIO(self._source) if isinstance(self._source, bytes) else self._source)
