"""Lists and queries."""

import ctypes
import enum
from dataclasses import dataclass
from typing import Iterable, Iterator, List, Optional, Tuple, Union

from . import _library
from ._errors import BufferTooSmall, Error
from ._library import check, encode, library

_FINISHED, _LISTED, _ANSWERED, _FAILED, _LIST_COMPLETE, _LIST_FAILED = range(6)
_NOT_FOUND = -10


class Detail(enum.IntEnum):
    """What servers are asked for."""

    LIST = 1
    PRESENCE = 2
    INFO = 3
    PLAYERS = 4


@dataclass(frozen=True)
class ScannedServer:
    """What a list or a server says. Numbers and texts that are unknown are None and empty."""

    address: str
    name: str
    game: str
    mode: str
    map: str
    version: str
    players: Optional[int]
    max_players: Optional[int]
    bots: Optional[int]
    password: Optional[bool]
    #: Round-trip time in milliseconds, if the server answered.
    ping_ms: Optional[float]
    #: Names of the players, with Detail.PLAYERS.
    player_names: Tuple[str, ...]
    #: Why the server did not answer, as a sentence.
    error: str
    #: Whether the server answered itself.
    answered: bool


class Scan:
    """A scan in progress, for one call at a time."""

    def __init__(
        self,
        targets: Union[str, Iterable[str]],
        detail: Detail = Detail.INFO,
        timeout: Optional[float] = None,
        packets_per_second: int = 0,
        ip_version: int = 0,
    ) -> None:
        joined = targets if isinstance(targets, str) else "\n".join(targets)
        config = _library.ScanConfig(
            detail=int(detail),
            timeout_ms=0 if timeout is None else max(1, round(timeout * 1000)),
            packets_per_second=packets_per_second,
            ip_version=ip_version,
        )
        handle = ctypes.c_uint64()
        check(library.rp_scan_start(encode(joined), ctypes.byref(config), ctypes.byref(handle)))
        self._handle = handle.value
        self._detail = detail
        self._buffer = ctypes.create_string_buffer(8192)
        self.is_finished = False

    def next(self, wait_ms: int) -> Optional[ScannedServer]:
        """The next result within this time. A list that cannot be read is an Error."""
        record = _library.ScanRecord()
        while True:
            try:
                found = check(
                    library.rp_scan_next(
                        self._handle, ctypes.byref(record), self._buffer, len(self._buffer), max(0, wait_ms)
                    )
                )
            except BufferTooSmall:
                self._buffer = ctypes.create_string_buffer(2 * len(self._buffer))
                continue
            if not found:
                return None
            if record.kind == _FINISHED:
                self.is_finished = True
                return None
            if record.kind == _LIST_FAILED:
                raise Error(_NOT_FOUND, _text(record.error))
            # With queries, the answer repeats what the list says.
            if record.kind in (_ANSWERED, _FAILED) or (record.kind == _LISTED and self._detail == Detail.LIST):
                return _server(record)

    def close(self) -> None:
        """Ends the scan."""
        library.rp_scan_close(self._handle)


def _text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


def _number(value: int) -> Optional[int]:
    return None if value < 0 else value


def _server(record: _library.ScanRecord) -> ScannedServer:
    names = _text(record.player_names)
    return ScannedServer(
        address=_text(record.address),
        name=_text(record.name),
        game=_text(record.game),
        mode=_text(record.mode),
        map=_text(record.map),
        version=_text(record.version),
        players=_number(record.players),
        max_players=_number(record.max_players),
        bots=_number(record.bots),
        password=None if record.password < 0 else bool(record.password),
        ping_ms=None if record.ping_us < 0 else record.ping_us / 1000,
        player_names=tuple(names.split("\n")) if names else (),
        error=_text(record.error),
        answered=record.kind == _ANSWERED,
    )


def scan(
    targets: Union[str, Iterable[str]], *, detail: Detail = Detail.INFO, timeout: Optional[float] = None
) -> Iterator[ScannedServer]:
    """Reads lists ("lobby://lobby.example.org/gg2") and queries servers ("play.example.org:6969"), and yields what it finds as
    it is found. TCP servers of a list, which cannot be queried, are found with Detail.LIST."""
    running = Scan(targets, detail, timeout)
    try:
        while not running.is_finished:
            server = running.next(60_000)
            if server is not None:
                yield server
    finally:
        running.close()


def list_servers(lobby: str, *, list: str = "gg2", timeout: Optional[float] = None) -> List[ScannedServer]:
    """The servers in a list of a lobby, without querying them."""
    return [*scan("lobby://%s/%s" % (lobby, list), detail=Detail.LIST, timeout=timeout)]


def query(address: str, *, detail: Detail = Detail.PLAYERS, timeout: Optional[float] = None) -> ScannedServer:
    """Queries one server; raises Error if it does not answer."""
    for server in scan(address, detail=detail, timeout=timeout):
        if server.answered:
            return server
        raise Error(_NOT_FOUND, server.error)
    raise Error(_NOT_FOUND, "no answer")
