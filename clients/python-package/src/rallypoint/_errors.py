"""Errors of the library."""


class Error(Exception):
    """A call of the library failed."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        #: One of the RP_ERROR_* codes.
        self.code = code


class BufferTooSmall(Error):
    """A buffer was too small. Methods of this package make it larger and repeat the call."""


class WouldBlock(Error):
    """The send window is full: an event WRITABLE follows when there is room again."""


BUFFER_TOO_SMALL = -3
WOULD_BLOCK = -11
