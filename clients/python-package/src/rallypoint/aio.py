"""The same for asyncio. Everything happens in the event loop's thread; sockets are polled every few milliseconds."""

import asyncio
from types import TracebackType
from typing import Any, AsyncIterator, Iterable, List, Optional, Type, Union

from . import _session
from ._errors import Error, WouldBlock
from ._scan import _NOT_FOUND, Detail, Scan, ScannedServer
from ._session import Event, EventKind, State, Stats

#: Time between two polls in seconds: less than a frame of a game.
TICK = 0.005


async def scan(
    targets: Union[str, Iterable[str]], *, detail: Detail = Detail.INFO, timeout: Optional[float] = None
) -> AsyncIterator[ScannedServer]:
    """As rallypoint.scan."""
    running = Scan(targets, detail, timeout)
    try:
        while not running.is_finished:
            server = running.next(0)
            if server is not None:
                yield server
            elif not running.is_finished:
                await asyncio.sleep(TICK)
    finally:
        running.close()


async def list_servers(lobby: str, *, list: str = "gg2", timeout: Optional[float] = None) -> List[ScannedServer]:
    """As rallypoint.list_servers."""
    found = scan("lobby://%s/%s" % (lobby, list), detail=Detail.LIST, timeout=timeout)
    return [server async for server in found]


async def query(address: str, *, detail: Detail = Detail.PLAYERS, timeout: Optional[float] = None) -> ScannedServer:
    """As rallypoint.query."""
    async for server in scan(address, detail=detail, timeout=timeout):
        if server.answered:
            return server
        raise Error(_NOT_FOUND, server.error)
    raise Error(_NOT_FOUND, "no answer")


class _Driven:
    """Polls a session until it is closed, and queues its events."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._events: "asyncio.Queue[Event]" = asyncio.Queue()
        self._task = asyncio.ensure_future(self._drive())

    async def _drive(self) -> None:
        while True:
            self._session.poll()
            for event in self._session.events():
                self._events.put_nowait(event)
            self._session.flush()
            await asyncio.sleep(TICK)

    async def next_event(self) -> Event:
        """Waits for the next event."""
        return await self._events.get()

    def _free(self) -> None:
        self._task.cancel()
        self._session.close()


class Client(_Driven):
    """A session client."""

    _session: _session.Client

    @classmethod
    async def connect(cls, server: str, **settings: Any) -> "Client":
        """Logs in, with the settings of rallypoint.Client; raises Error if that fails. A name is resolved in a thread."""
        loop = asyncio.get_running_loop()
        session = await loop.run_in_executor(None, lambda: _session.Client(server, **settings))
        client = cls(session)
        event = await client.next_event()
        if event.kind != EventKind.CONNECTED:
            client._free()
            raise Error(_NOT_FOUND, event.text)
        return client

    def send(self, message: bytes) -> None:
        """Sends a message, reliably; raises WouldBlock if the window is full."""
        self._session.send(message)
        self._session.flush()

    def send_on(self, channel: int, message: bytes) -> int:
        """Sends a message on a channel: as rallypoint.Client.send_on."""
        number = self._session.send_on(channel, message)
        self._session.flush()
        return number

    async def send_all(self, message: bytes) -> None:
        """Sends a message as soon as the window has room."""
        while True:
            try:
                return self.send(message)
            except WouldBlock:
                await asyncio.sleep(TICK)

    async def receive(self) -> bytes:
        """Waits for a message; raises Error when the session has ended."""
        while True:
            event = await self.next_event()
            if event.kind == EventKind.MESSAGE:
                return event.data
            if event.kind in (EventKind.DISCONNECTED, EventKind.LOGIN_FAILED):
                raise Error(-13, event.text)

    def stats(self) -> Stats:
        """Statistics of the connection."""
        return self._session.stats()

    async def close(self) -> None:
        """Delivers what is left, tells the server, and frees the client."""
        self._session.disconnect()
        while self._session.state != State.CLOSED:
            await asyncio.sleep(TICK)
        self._free()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()


class Server(_Driven):
    """A session server, with the settings of rallypoint.Server. It is made within a running event loop."""

    _session: _session.Server

    def __init__(self, **settings: Any) -> None:
        super().__init__(_session.Server(**settings))

    def send(self, player: int, message: bytes) -> None:
        """Sends a message to a player, reliably; raises WouldBlock if the window is full."""
        self._session.send(player, message)

    def send_on(self, player: int, channel: int, message: bytes) -> int:
        """Sends a message to a player on a channel: as rallypoint.Client.send_on."""
        return self._session.send_on(player, channel, message)

    def broadcast(self, channel: int, message: bytes) -> int:
        """Sends a message on a channel to all players. Returns the number of recipients."""
        return self._session.broadcast(channel, message)

    def accept(self, player: int) -> None:
        """Accepts a player after LOGIN_REQUEST; disconnect refuses it, with a reason."""
        self._session.accept(player)

    def token_data(self, player: int) -> bytes:
        """The data in a player's token, from LOGIN_REQUEST on."""
        return self._session.token_data(player)

    def disconnect(self, player: int, reason: str = "") -> None:
        """Ends a player's session."""
        self._session.disconnect(player, reason)

    def set_info(self, **info: Any) -> None:
        """Sets what queries are answered with: as rallypoint.Server.set_info."""
        self._session.set_info(**info)

    def local_address(self, index: int = 0) -> str:
        """The address that the server listens on, with its actual port."""
        return self._session.local_address(index)

    async def close(self) -> None:
        """Frees the server."""
        self._free()

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()
