"""Sessions for game loops: one call per frame, no thread."""

import ctypes
import enum
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Type, TypeVar

from . import _library
from ._errors import BufferTooSmall
from ._library import check, encode, library


class Encryption(enum.IntEnum):
    """How a session is protected."""

    DEFAULT = 0
    PLAIN = 1
    REQUIRED = 2


class EventKind(enum.IntEnum):
    """What happened."""

    CONNECTED = 1
    MESSAGE = 2
    WRITABLE = 3
    CLOSING = 4
    DISCONNECTED = 5
    LOGIN_FAILED = 6
    MOVED = 7
    LOGIN_REQUEST = 8
    RECEIPT = 9


class Reason(enum.IntEnum):
    """Why a session ended, or a login failed."""

    NONE = 0
    CLOSED = 1
    CLOSED_BY_PEER = 2
    TIMED_OUT = 3
    REPLACED = 4
    REFUSED = 5
    OTHER = 6


class State(enum.IntEnum):
    """How far a client is."""

    CONNECTING = 1
    CONNECTED = 2
    CLOSED = 3


class ChannelMode(enum.IntEnum):
    """What a channel promises."""

    RELIABLE_ORDERED = 0
    RELIABLE_UNORDERED = 1
    SEQUENCED = 2
    EXPIRING = 3


@dataclass(frozen=True)
class Channel:
    """A channel. Its number is its position in the list. Mode, sizes and receipts are the same on both sides."""

    mode: ChannelMode
    #: Maximum length in bytes of a message to the server; 0: there are none in this direction.
    max_to_server: int
    #: The same for messages to a client.
    max_to_client: int
    #: 1 to 256: lower numbers are sent first. 0: the default of the mode.
    priority: int = 0
    #: Seconds for which a message of an expiring channel is of use.
    max_age: float = 0.25
    #: Maximum rate in bytes per second; 0: unlimited.
    rate: int = 0
    #: Number of bytes that may wait to be sent.
    queue: int = 1 << 20
    #: Whether RECEIPT follows when the other side has read a message.
    receipts: bool = False


@dataclass(frozen=True)
class Event:
    """An event of a client or a server."""

    kind: EventKind
    #: The player, at a server.
    player: int
    #: The message, or a text: the name of a player who connected, or the reason.
    data: bytes
    reason: Reason
    #: The channel of a message or a receipt.
    channel: int = 0

    @property
    def message_number(self) -> int:
        """The number of the message that a receipt is for: what send_on has returned."""
        return int.from_bytes(self.data, sys.byteorder)

    @property
    def text(self) -> str:
        """The data as a text."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Stats:
    """Current round-trip time, loss and throughput of a connection, and its counters."""

    max_message: int
    rtt_us: int
    loss: float
    rate: int
    unacked: int
    messages_sent: int
    messages_received: int
    bytes_sent: int
    bytes_received: int
    resends: int


def _optional_key(key: Optional[bytes]) -> Optional[bytes]:
    if key is not None and len(key) != 32:
        raise ValueError("a key has 32 bytes")
    return key


def _channels(channels: Sequence[Channel]) -> Any:
    """An array for the library, or None."""
    raw = [
        _library.RawChannel(
            mode=int(channel.mode),
            max_to_server=channel.max_to_server,
            max_to_client=channel.max_to_client,
            priority=channel.priority,
            max_age_ms=round(channel.max_age * 1000),
            rate=channel.rate,
            queue=channel.queue,
            receipts=int(channel.receipts),
        )
        for channel in channels
    ]
    return (_library.RawChannel * len(raw))(*raw) if raw else None


def _stats(raw: _library.RawStats) -> Stats:
    return Stats(*(getattr(raw, name) for name, *_ in raw._fields_[1:]))


Self = TypeVar("Self", bound="_Session")


class _Session:
    """What clients and servers have in common."""

    _handle: int
    _prefix: str

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(2048)
        self._is_closed = False

    def _call(self, name: str, *arguments: Any) -> int:
        function: Callable[..., int] = getattr(library, self._prefix + name)
        return check(function(self._handle, *arguments))

    def poll(self) -> None:
        """Receives datagrams, handles timers, and sends what is due. Call it once per frame."""
        self._call("poll")

    def flush(self) -> None:
        """Sends messages now and not with the next poll. Call it at the end of a frame."""
        self._call("flush")

    def wait(self, seconds: float) -> None:
        """Waits until a datagram arrives, a timer expires, or this time has passed, for loops without frames."""
        self._call("wait", max(0, round(seconds * 1000)))

    def next_event(self) -> Optional[Event]:
        """The next event, if there is one."""
        raw = _library.RawEvent()
        try:
            found = self._call("next_event", ctypes.byref(raw), self._buffer, len(self._buffer))
        except BufferTooSmall:
            self._buffer = ctypes.create_string_buffer(raw.length)
            return self.next_event()
        if not found:
            return None
        data = ctypes.string_at(self._buffer, raw.length)
        kind = EventKind(raw.kind)
        if kind in (EventKind.MESSAGE, EventKind.RECEIPT):
            return Event(kind, raw.player, data, Reason.NONE, raw.code)
        return Event(kind, raw.player, data, Reason(raw.code))

    def events(self) -> Iterator[Event]:
        """The events that there are now."""
        event = self.next_event()
        while event is not None:
            yield event
            event = self.next_event()

    def close(self) -> None:
        """Frees the object, without a farewell: disconnect comes first."""
        if not self._is_closed:
            self._is_closed = True
            self._call("close")

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


class Client(_Session):
    """A session client: call poll once per frame, then read its events."""

    _prefix = "rp_client_"

    def __init__(
        self,
        server: str,
        *,
        username: str,
        game: str,
        encryption: Encryption = Encryption.DEFAULT,
        server_key: Optional[bytes] = None,
        login_timeout: float = 0,
        reconnect: bool = False,
        window: int = 0,
        max_stream_message: int = 0,
        channels: Sequence[Channel] = (),
        token: bytes = b"",
    ) -> None:
        super().__init__()
        config = _library.ClientConfig(
            encryption=int(encryption),
            username=encode(username),
            game=encode(game),
            server_key=_optional_key(server_key),
            login_timeout_ms=round(login_timeout * 1000),
            reconnect=int(reconnect),
            window=window,
            max_stream_message=max_stream_message,
            channels=_channels(channels),
            channel_count=len(channels),
            token=token,
            token_length=len(token),
        )
        handle = ctypes.c_uint64()
        check(library.rp_client_connect(encode(server), ctypes.byref(config), ctypes.byref(handle)))
        self._handle = handle.value

    def send(self, message: bytes) -> None:
        """Sends a message, reliably; raises WouldBlock if the window is full."""
        self._call("send", message, len(message))

    def send_on(self, channel: int, message: bytes) -> int:
        """Sends a message on a channel; raises WouldBlock if its queue is full. Returns the number that a receipt names."""
        number = ctypes.c_uint64()
        self._call("send_on", channel, message, len(message), ctypes.byref(number))
        return number.value

    @property
    def state(self) -> State:
        """Whether messages can be sent."""
        return State(self._call("state"))

    @property
    def is_delivered(self) -> bool:
        """Whether the server has acknowledged every message that was sent."""
        return bool(self._call("is_delivered"))

    def stats(self) -> Stats:
        """Statistics of the connection."""
        raw = _library.RawStats()
        self._call("stats", ctypes.byref(raw))
        return _stats(raw)

    def disconnect(self) -> None:
        """Ends the session. Poll until the state is CLOSED: it takes a moment."""
        self._call("disconnect")


class Server(_Session):
    """A session server: call poll once per frame, then read its events."""

    _prefix = "rp_server_"

    def __init__(
        self,
        *,
        game: str,
        listen: Optional[str] = None,
        encryption: Encryption = Encryption.DEFAULT,
        secret_key: Optional[bytes] = None,
        max_players: int = 0,
        max_per_address: int = 0,
        window: int = 0,
        max_stream_message: int = 0,
        channels: Sequence[Channel] = (),
        decides_logins: bool = False,
        plain_channel: Optional[int] = None,
        token_key: Optional[bytes] = None,
    ) -> None:
        super().__init__()
        config = _library.ServerConfig(
            encryption=int(encryption),
            listen=None if listen is None else encode(listen),
            game=encode(game),
            secret_key=_optional_key(secret_key),
            max_players=max_players,
            max_per_address=max_per_address,
            window=window,
            max_stream_message=max_stream_message,
            channels=_channels(channels),
            channel_count=len(channels),
            decides_logins=int(decides_logins),
            plain_channel=0 if plain_channel is None else plain_channel + 1,
            token_key=_optional_key(token_key),
        )
        handle = ctypes.c_uint64()
        check(library.rp_server_bind(ctypes.byref(config), ctypes.byref(handle)))
        self._handle = handle.value

    def send(self, player: int, message: bytes) -> None:
        """Sends a message to a player, reliably; raises WouldBlock if the window is full."""
        self._call("send", player, message, len(message))

    def send_on(self, player: int, channel: int, message: bytes) -> int:
        """Sends a message to a player on a channel: as Client.send_on."""
        number = ctypes.c_uint64()
        self._call("send_on", player, channel, message, len(message), ctypes.byref(number))
        return number.value

    def broadcast(self, channel: int, message: bytes) -> int:
        """Sends a message on a channel to all players. Returns the number of recipients."""
        return self._call("broadcast", channel, message, len(message))

    def accept(self, player: int) -> None:
        """Accepts a player after LOGIN_REQUEST; disconnect refuses it, with a reason."""
        self._call("accept", player)

    def token_data(self, player: int) -> bytes:
        """The data in a player's token, from LOGIN_REQUEST on."""
        length = self._call("token_data", player, self._buffer, len(self._buffer))
        return ctypes.string_at(self._buffer, length)

    def disconnect(self, player: int, reason: str = "") -> None:
        """Ends a player's session. That is also how a LOGIN_REQUEST is refused."""
        self._call("disconnect", player, encode(reason))

    def stats(self, player: int) -> Stats:
        """Statistics of a player's connection."""
        raw = _library.RawStats()
        self._call("stats", player, ctypes.byref(raw))
        return _stats(raw)

    def player_address(self, player: int) -> str:
        """The address of a player."""
        self._call("player_address", player, self._buffer, len(self._buffer))
        return self._buffer.value.decode()

    def local_address(self, index: int = 0) -> str:
        """The address that the server listens on, with its actual port."""
        self._call("local_address", index, self._buffer, len(self._buffer))
        return self._buffer.value.decode()

    def set_info(
        self,
        *,
        name: Optional[str] = None,
        game: Optional[str] = None,
        mode: Optional[str] = None,
        map: Optional[str] = None,
        players: Optional[int] = None,
        max_players: Optional[int] = None,
        bots: Optional[int] = None,
        password: Optional[bool] = None,
        player_names: Iterable[str] = (),
    ) -> None:
        """Sets what queries are answered with. The number of players is that of their names, if it is not given."""
        names = list(player_names)
        if players is None and names:
            players = len(names)

        def number(value: Optional[int]) -> int:
            return -1 if value is None else int(value)

        def text(value: Optional[str]) -> Optional[bytes]:
            return None if value is None else encode(value)

        info = _library.ServerInfo(
            players=number(players),
            max_players=number(max_players),
            bots=number(bots),
            password=number(password),
            name=text(name),
            game=text(game),
            mode=text(mode),
            map=text(map),
            player_names=encode("\n".join(names)) if names else None,
        )
        self._call("set_info", ctypes.byref(info))
