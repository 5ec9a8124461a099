"""Sessions, announcing, lists and queries for games, over librallypoint."""

from ._announcer import Announcer
from ._errors import BufferTooSmall, Error, WouldBlock
from ._keys import generate_key, issue_token, public_key, token_key
from ._library import version
from ._scan import Detail, ScannedServer, list_servers, query, scan
from ._session import Channel, ChannelMode, Client, Encryption, Event, EventKind, Reason, Server, State, Stats

__all__ = [
    "Announcer",
    "BufferTooSmall",
    "Channel",
    "ChannelMode",
    "Client",
    "Detail",
    "Encryption",
    "Error",
    "Event",
    "EventKind",
    "Reason",
    "ScannedServer",
    "Server",
    "State",
    "Stats",
    "WouldBlock",
    "generate_key",
    "issue_token",
    "list_servers",
    "public_key",
    "query",
    "scan",
    "token_key",
    "version",
]
