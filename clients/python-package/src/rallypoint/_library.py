"""Loads the library and declares its functions. The names are those of rallypoint.h."""

import ctypes
import ctypes.util
import os
import sys
from ctypes import POINTER, c_char_p, c_double, c_int32, c_size_t, c_uint8, c_uint32, c_uint64
from pathlib import Path
from typing import Any, Callable, List, Tuple, Type

from ._errors import BUFFER_TOO_SMALL, WOULD_BLOCK, BufferTooSmall, Error, WouldBlock

ABI_VERSION = 1


class Sized(ctypes.Structure):
    """A structure that begins with its own size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)
        # ctypes cuts off the bits that do not fit.
        for name, value in fields.items():
            if isinstance(value, int) and getattr(self, name) != value:
                raise ValueError("%s: %d is out of range" % (name, value))


class RawChannel(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("mode", c_uint32),
        ("max_to_server", c_uint32),
        ("max_to_client", c_uint32),
        ("priority", c_uint32),
        ("max_age_ms", c_uint32),
        ("rate", c_uint32),
        ("queue", c_uint32),
        ("receipts", c_uint32),
    ]


class ClientConfig(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("encryption", c_uint32),
        ("username", c_char_p),
        ("game", c_char_p),
        ("server_key", c_char_p),
        ("login_timeout_ms", c_uint32),
        ("reconnect", c_uint32),
        ("window", c_uint32),
        ("unordered", c_uint32),
        ("idle_timeout_ms", c_uint32),
        ("max_stream_message", c_uint32),
        ("channels", POINTER(RawChannel)),
        ("channel_count", c_uint32),
        ("token_length", c_uint32),
        ("token", c_char_p),
    ]


class ServerConfig(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("encryption", c_uint32),
        ("listen", c_char_p),
        ("game", c_char_p),
        ("secret_key", c_char_p),
        ("max_players", c_uint32),
        ("max_per_address", c_uint32),
        ("window", c_uint32),
        ("unordered", c_uint32),
        ("idle_timeout_ms", c_uint32),
        ("max_stream_message", c_uint32),
        ("channels", POINTER(RawChannel)),
        ("channel_count", c_uint32),
        ("decides_logins", c_uint32),
        ("plain_channel", c_uint32),
        ("reserved", c_uint32),
        ("token_key", c_char_p),
    ]


class ServerInfo(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("players", c_int32),
        ("max_players", c_int32),
        ("bots", c_int32),
        ("password", c_int32),
        ("reserved", c_uint32),
        ("name", c_char_p),
        ("game", c_char_p),
        ("mode", c_char_p),
        ("map", c_char_p),
        ("player_names", c_char_p),
    ]


class AnnouncerConfig(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("port", c_uint32),
        ("transport", c_uint32),
        ("slots", c_uint32),
        ("players", c_uint32),
        ("bots", c_uint32),
        ("password", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char_p),
        ("lobbies", c_char_p),
        ("lobby_id", c_char_p),
        ("server_id", c_char_p),
    ]


class ScanConfig(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("detail", c_uint32),
        ("timeout_ms", c_uint32),
        ("packets_per_second", c_uint32),
        ("ip_version", c_uint32),
        ("connect_tcp", c_uint32),
    ]


class ScanRecord(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("target", c_uint32),
        ("players", c_int32),
        ("max_players", c_int32),
        ("bots", c_int32),
        ("password", c_int32),
        ("ping_us", c_int32),
        ("address", c_char_p),
        ("name", c_char_p),
        ("game", c_char_p),
        ("mode", c_char_p),
        ("map", c_char_p),
        ("version", c_char_p),
        ("player_names", c_char_p),
        ("error", c_char_p),
    ]


class RawEvent(ctypes.Structure):
    _fields_ = [("kind", c_uint32), ("player", c_uint32), ("length", c_uint32), ("code", c_uint32)]


class RawStats(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("max_message", c_uint32),
        ("rtt_us", c_uint64),
        ("loss", c_double),
        ("rate", c_uint64),
        ("unacked", c_uint64),
        ("messages_sent", c_uint64),
        ("messages_received", c_uint64),
        ("bytes_sent", c_uint64),
        ("bytes_received", c_uint64),
        ("resends", c_uint64),
    ]


_HANDLE = POINTER(c_uint64)
_BYTES = POINTER(c_uint8)
_NUMBERS = (c_uint32, c_uint64)

# Functions that return a length or an error code.
_FUNCTIONS: List[Tuple[str, List[Type[Any]]]] = [
    ("rp_generate_key", [c_char_p]),
    ("rp_public_key", [c_char_p, c_char_p]),
    ("rp_token_key", [c_char_p, c_char_p]),
    ("rp_token_issue", [c_char_p, c_char_p, c_char_p, c_uint64, c_char_p, c_size_t, c_char_p, c_size_t]),
    ("rp_client_connect", [c_char_p, POINTER(ClientConfig), _HANDLE]),
    ("rp_client_poll", [c_uint64]),
    ("rp_client_wait", [c_uint64, c_uint32]),
    ("rp_client_flush", [c_uint64]),
    ("rp_client_send", [c_uint64, c_char_p, c_size_t]),
    ("rp_client_send_on", [c_uint64, c_uint32, c_char_p, c_size_t, POINTER(c_uint64)]),
    ("rp_client_next_event", [c_uint64, POINTER(RawEvent), c_char_p, c_size_t]),
    ("rp_client_state", [c_uint64]),
    ("rp_client_is_delivered", [c_uint64]),
    ("rp_client_stats", [c_uint64, POINTER(RawStats)]),
    ("rp_client_disconnect", [c_uint64]),
    ("rp_client_close", [c_uint64]),
    ("rp_server_bind", [POINTER(ServerConfig), _HANDLE]),
    ("rp_server_poll", [c_uint64]),
    ("rp_server_wait", [c_uint64, c_uint32]),
    ("rp_server_flush", [c_uint64]),
    ("rp_server_send", [c_uint64, c_uint32, c_char_p, c_size_t]),
    ("rp_server_send_on", [c_uint64, c_uint32, c_uint32, c_char_p, c_size_t, POINTER(c_uint64)]),
    ("rp_server_broadcast", [c_uint64, c_uint32, c_char_p, c_size_t]),
    ("rp_server_accept", [c_uint64, c_uint32]),
    ("rp_server_token_data", [c_uint64, c_uint32, c_char_p, c_size_t]),
    ("rp_server_next_event", [c_uint64, POINTER(RawEvent), c_char_p, c_size_t]),
    ("rp_server_disconnect", [c_uint64, c_uint32, c_char_p]),
    ("rp_server_stats", [c_uint64, c_uint32, POINTER(RawStats)]),
    ("rp_server_player_address", [c_uint64, c_uint32, c_char_p, c_size_t]),
    ("rp_server_local_address", [c_uint64, c_uint32, c_char_p, c_size_t]),
    ("rp_server_set_info", [c_uint64, POINTER(ServerInfo)]),
    ("rp_server_close", [c_uint64]),
    ("rp_announcer_start", [POINTER(AnnouncerConfig), _HANDLE]),
    ("rp_announcer_poll", [c_uint64]),
    ("rp_announcer_next_event", [c_uint64, c_char_p, c_size_t]),
    ("rp_announcer_set_occupancy", [c_uint64, c_uint32, c_uint32, c_uint32, c_uint32]),
    ("rp_announcer_set_key", [c_uint64, c_char_p, c_char_p, c_size_t]),
    ("rp_announcer_registrations_sent", [c_uint64]),
    ("rp_announcer_close", [c_uint64]),
    ("rp_scan_start", [c_char_p, POINTER(ScanConfig), _HANDLE]),
    ("rp_scan_next", [c_uint64, POINTER(ScanRecord), c_char_p, c_size_t, c_uint32]),
    ("rp_scan_close", [c_uint64]),
]


def _path() -> str:
    chosen = os.environ.get("RALLYPOINT_LIBRARY")
    if chosen:
        return chosen
    name = {"win32": "rallypoint.dll", "darwin": "librallypoint.dylib"}.get(sys.platform, "librallypoint.so")
    packaged = Path(__file__).with_name(name)
    if packaged.exists():
        return str(packaged)
    installed = ctypes.util.find_library("rallypoint")
    if installed:
        return installed
    raise ImportError(name + " is neither in the package nor installed; RALLYPOINT_LIBRARY can name it")


def _checked(function: Callable[..., int], limits: List[Tuple[int, int]]) -> Callable[..., int]:
    """Calls a function if its numbers are below these limits, by position: ctypes cuts off the bits that do not fit."""

    def call(*arguments: Any) -> int:
        for at, limit in limits:
            if not 0 <= arguments[at] < limit:
                raise ValueError("%d is out of range" % arguments[at])
        return function(*arguments)

    return call


def _load() -> ctypes.CDLL:
    loaded = ctypes.CDLL(_path())
    loaded.rp_abi_version.restype = c_uint32
    found = loaded.rp_abi_version()
    if found != ABI_VERSION:
        raise ImportError("the library has version %d of the interface, not %d" % (found, ABI_VERSION))
    for name, arguments in _FUNCTIONS:
        function = getattr(loaded, name)
        function.argtypes = arguments
        function.restype = c_int32
        # The first one is a handle, which the library checks.
        limits = [(at, 1 << 8 * ctypes.sizeof(kind)) for at, kind in enumerate(arguments) if at > 0 and kind in _NUMBERS]
        if limits:
            setattr(loaded, name, _checked(function, limits))
    loaded.rp_version.restype = c_char_p
    loaded.rp_last_error.argtypes = [c_char_p, c_size_t]
    loaded.rp_last_error.restype = c_size_t
    return loaded


library = _load()


def version() -> str:
    """The version of the library."""
    text: bytes = library.rp_version()
    return text.decode()


def check(result: int) -> int:
    """Raises the error that a negative result stands for."""
    if result >= 0:
        return result
    buffer = ctypes.create_string_buffer(512)
    library.rp_last_error(buffer, len(buffer))
    text = buffer.value.decode("utf-8", "replace")
    kinds = {BUFFER_TOO_SMALL: BufferTooSmall, WOULD_BLOCK: WouldBlock}
    raise kinds.get(result, Error)(result, text)


def encode(text: str) -> bytes:
    """A text for the library, which ends texts with a zero byte."""
    if "\0" in text:
        raise ValueError("a text must not contain a zero character")
    return text.encode()
