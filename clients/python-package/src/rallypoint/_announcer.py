"""Keeping a game server registered with lobbies."""

import ctypes
import threading
from types import TracebackType
from typing import Iterable, List, Optional, Type, Union

from . import _library
from ._library import check, encode, library


class Announcer:
    """Keeps a game server registered with lobbies, from a thread of its own, until it is closed."""

    def __init__(
        self,
        name: str,
        *,
        port: int,
        lobbies: Union[str, Iterable[str]],
        list: Optional[str] = None,
        tcp: bool = False,
        slots: int = 0,
        players: int = 0,
        bots: int = 0,
        password: bool = False,
        server_id: Optional[bytes] = None,
    ) -> None:
        if server_id is not None and len(server_id) != 16:
            raise ValueError("a server ID has 16 bytes")
        joined = lobbies if isinstance(lobbies, str) else ",".join(lobbies)
        config = _library.AnnouncerConfig(
            port=port,
            transport=int(tcp),
            slots=slots,
            players=players,
            bots=bots,
            password=int(password),
            name=encode(name),
            lobbies=encode(joined),
            lobby_id=None if list is None else encode(list),
            server_id=server_id,
        )
        handle = ctypes.c_uint64()
        check(library.rp_announcer_start(ctypes.byref(config), ctypes.byref(handle)))
        self._handle = handle.value
        # An object of the library is used by one thread at a time.
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_closed = False
        self._events: List[str] = []
        self._poll()
        self._thread = threading.Thread(target=self._run, name="rallypoint announcer", daemon=True)
        self._thread.start()

    def set_occupancy(self, *, slots: int, players: int = 0, bots: int = 0, password: bool = False) -> None:
        """Sets the current number of slots, players and bots. A change is sent at once, but at most one per second."""
        with self._lock:
            check(library.rp_announcer_set_occupancy(self._handle, slots, players, bots, int(password)))
        self._wake.set()

    def set_key(self, key: str, value: Union[str, bytes]) -> None:
        """Sets a key of the registration: "name", "map", "game", "x-..."."""
        data = value.encode() if isinstance(value, str) else value
        with self._lock:
            check(library.rp_announcer_set_key(self._handle, encode(key), data, len(data)))
        self._wake.set()

    def take_events(self) -> List[str]:
        """What happened since the last call, such as a lobby that cannot be found, as sentences for a log."""
        with self._lock:
            events, self._events = self._events, []
        return events

    @property
    def registrations_sent(self) -> int:
        """Number of registrations that have left this machine."""
        with self._lock:
            return check(library.rp_announcer_registrations_sent(self._handle))

    def close(self) -> None:
        """Removes the server from the lists."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            check(library.rp_announcer_close(self._handle))
        self._wake.set()
        self._thread.join()

    def _poll(self) -> float:
        """Returns the number of seconds until there is something to do."""
        text = ctypes.create_string_buffer(1024)
        wait = check(library.rp_announcer_poll(self._handle))
        while check(library.rp_announcer_next_event(self._handle, text, len(text))) == 1:
            # A program that never reads them keeps the latest.
            self._events = self._events[-63:] + [text.value.decode()]
        return wait / 1000

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._is_closed:
                    return
                wait = self._poll()
            self._wake.wait(wait)
            self._wake.clear()

    def __enter__(self) -> "Announcer":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()
