"""Tests of the package. RALLYPOINT_LOBBY is the address of a lobby. pytest and unittest both run them."""

import asyncio
import os
import time
import unittest
from typing import Callable, List

import rallypoint
from rallypoint import Channel, ChannelMode, Client, Detail, Encryption, Error, Event, EventKind, Reason, Server, State, aio

LOBBY = os.environ.get("RALLYPOINT_LOBBY", "")
#: Seconds after which a test gives up. Nothing is asserted about how long anything takes.
PATIENCE = 60


def eventually(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.01)


class Sessions(unittest.TestCase):
    def test_messages_go_both_ways(self) -> None:
        key = rallypoint.generate_key()
        with Server(game="tag", listen="127.0.0.1:0", secret_key=key) as server, Client(
            server.local_address(),
            username="älice",
            game="tag",
            server_key=rallypoint.public_key(key),
            login_timeout=PATIENCE,
        ) as client:
            at_server: List[Event] = []
            at_client: List[Event] = []

            def wait_for(events: List[Event], kind: EventKind) -> Event:
                def frame() -> bool:
                    server.poll()
                    client.poll()
                    at_server.extend(server.events())
                    at_client.extend(client.events())
                    server.flush()
                    client.flush()
                    return any(event.kind == kind for event in events)

                eventually(str(kind), frame)
                return next(event for event in events if event.kind == kind)

            joined = wait_for(at_server, EventKind.CONNECTED)
            wait_for(at_client, EventKind.CONNECTED)
            self.assertEqual(joined.text, "älice")
            self.assertEqual(client.state, State.CONNECTED)
            self.assertTrue(server.player_address(joined.player).startswith("127.0.0.1:"))

            client.send(b"to the server\0")
            server.send(joined.player, b"to the client")
            self.assertEqual(wait_for(at_server, EventKind.MESSAGE).data, b"to the server\0")
            self.assertEqual(wait_for(at_client, EventKind.MESSAGE).data, b"to the client")
            self.assertGreater(client.stats().messages_sent, 0)
            self.assertGreater(server.stats(joined.player).max_message, 100)

            server.disconnect(joined.player, "the end")
            end = wait_for(at_client, EventKind.DISCONNECTED)
            self.assertEqual(end.reason, Reason.CLOSED_BY_PEER)
            self.assertIn("the end", end.text)

    def test_a_message_longer_than_a_datagram_arrives(self) -> None:
        message = bytes(range(256)) * 400
        with Server(game="tag", listen="127.0.0.1:0", max_stream_message=1 << 20) as server, Client(
            server.local_address(),
            username="bob",
            game="tag",
            encryption=Encryption.PLAIN,
            max_stream_message=1 << 20,
            login_timeout=PATIENCE,
        ) as client:
            received: List[bytes] = []
            is_sent = False

            def frame() -> bool:
                nonlocal is_sent
                client.poll()
                list(client.events())
                if client.state == State.CONNECTED and not is_sent:
                    client.send(message)
                    is_sent = True
                client.flush()
                server.poll()
                received.extend(event.data for event in server.events() if event.kind == EventKind.MESSAGE)
                server.flush()
                return bool(received)

            eventually("the message arrives", frame)
            self.assertEqual(received, [message])

    def test_channels_carry_messages_receipts_and_tokens(self) -> None:
        chat, positions = 0, 1
        channels = [
            Channel(ChannelMode.RELIABLE_ORDERED, 100_000, 100_000, receipts=True),
            Channel(ChannelMode.SEQUENCED, 50, 50),
        ]
        key = rallypoint.generate_key()
        service = rallypoint.generate_key()
        server_key = rallypoint.public_key(key)
        expires = int(time.time()) + 3600
        token = rallypoint.issue_token(service, server_key=server_key, username="alice", expires=expires, data=b"17")
        with Server(
            game="tag",
            listen="127.0.0.1:0",
            secret_key=key,
            channels=channels,
            decides_logins=True,
            token_key=rallypoint.token_key(service),
        ) as server, Client(
            server.local_address(),
            username="alice",
            game="tag",
            server_key=server_key,
            channels=channels,
            token=token,
            login_timeout=PATIENCE,
        ) as client:
            found: List[Event] = []

            def frame() -> None:
                server.poll()
                client.poll()
                for event in server.events():
                    found.append(event)
                    if event.kind == EventKind.LOGIN_REQUEST:
                        self.assertEqual((event.text, server.token_data(event.player)), ("alice", b"17"))
                        server.accept(event.player)
                found.extend(client.events())
                server.flush()
                client.flush()

            def wait_for(kind: EventKind, count: int) -> List[Event]:
                def is_found() -> bool:
                    frame()
                    return len([event for event in found if event.kind == kind]) >= count

                eventually(str(kind), is_found)
                return [event for event in found if event.kind == kind]

            player = next(event.player for event in wait_for(EventKind.CONNECTED, 2) if event.player)
            large = bytes(range(256)) * 300
            numbers = [client.send_on(chat, large), client.send_on(chat, b"")]
            self.assertEqual(server.send_on(player, chat, b"hello"), 0)
            self.assertEqual(server.broadcast(positions, b"here"), 1)
            messages = wait_for(EventKind.MESSAGE, 4)
            self.assertEqual([one.data for one in messages if one.player == player], [large, b""])
            to_client = {(one.channel, one.data) for one in messages if one.player == 0}
            self.assertEqual(to_client, {(chat, b"hello"), (positions, b"here")})
            receipts = wait_for(EventKind.RECEIPT, 3)
            self.assertEqual([one.message_number for one in receipts if one.player == 0], numbers)
            with self.assertRaises(Error):
                client.send(b"without a channel")
            with self.assertRaises(Error):
                client.send_on(positions, bytes(51))

    def test_errors_have_a_code_and_a_sentence(self) -> None:
        with self.assertRaises(Error) as caught:
            Client("127.0.0.1:9", username="", game="tag")
        self.assertEqual(caught.exception.code, -5)
        self.assertIn("username", str(caught.exception))
        server = Server(game="tag", listen="127.0.0.1:0")
        server.close()
        server.close()
        with self.assertRaises(Error) as caught:
            server.poll()
        self.assertEqual(caught.exception.code, -2)
        with self.assertRaises(Error):
            list(rallypoint.scan("gopher://example.org"))
        with self.assertRaises(ValueError):
            rallypoint.public_key(b"short")
        with self.assertRaises(ValueError):
            rallypoint.Announcer("a\0b", port=8190, lobbies="127.0.0.1")

    def test_numbers_that_do_not_fit_are_errors(self) -> None:
        with self.assertRaisesRegex(ValueError, "max_players: 4294967297 is out of range"):
            Server(game="tag", listen="127.0.0.1:0", max_players=(1 << 32) + 1)
        with self.assertRaisesRegex(ValueError, "port: 4294975486 is out of range"):
            rallypoint.Announcer("Bacon Town", port=(1 << 32) + 8190, lobbies="127.0.0.1")
        with Server(game="tag", listen="127.0.0.1:0") as server:
            for player in ((1 << 32), -1):
                with self.assertRaisesRegex(ValueError, "%d is out of range" % player):
                    server.send(player, b"hello")
            with self.assertRaises(ValueError):
                server.set_info(name="Bacon Town", max_players=1 << 31)
            with self.assertRaises(ValueError):
                server.wait(1 << 30)


class Queries(unittest.TestCase):
    def test_a_server_is_queried(self) -> None:
        async def main() -> rallypoint.ScannedServer:
            async with aio.Server(game="tag", listen="127.0.0.1:0") as server:
                server.set_info(name="Bacon Town", map="dusk", player_names=["alice", "bob"], max_players=16)
                return await aio.query("session://" + server.local_address(), timeout=PATIENCE)

        found = asyncio.run(main())
        self.assertEqual((found.name, found.map, found.players, found.max_players), ("Bacon Town", "dusk", 2, 16))
        self.assertEqual(found.player_names, ("alice", "bob"))
        self.assertTrue(found.answered and found.ping_ms is not None and found.ping_ms > 0)

    def test_a_server_that_is_not_there_is_an_error(self) -> None:
        with self.assertRaises(Error):
            rallypoint.query("session://127.0.0.1:9", timeout=0.2)


class Asynchronous(unittest.TestCase):
    def test_an_echo(self) -> None:
        async def echo(server: aio.Server) -> None:
            while True:
                event = await server.next_event()
                if event.kind == EventKind.MESSAGE:
                    server.send(event.player, event.data)

        async def main() -> bytes:
            async with aio.Server(game="tag", listen="127.0.0.1:0") as server:
                task = asyncio.ensure_future(echo(server))
                address = server.local_address()
                async with await aio.Client.connect(address, username="alice", game="tag", login_timeout=60) as client:
                    await client.send_all(b"hello")
                    reply = await client.receive()
                task.cancel()
                return reply

        self.assertEqual(asyncio.run(main()), b"hello")

    def test_a_refused_login_is_an_error(self) -> None:
        async def main() -> None:
            async with aio.Server(game="tag", listen="127.0.0.1:0") as server:
                await aio.Client.connect(server.local_address(), username="alice", game="other", login_timeout=60)

        with self.assertRaises(Error):
            asyncio.run(main())


@unittest.skipUnless(LOBBY, "RALLYPOINT_LOBBY names no lobby")
class Lobbies(unittest.TestCase):
    def test_a_server_is_registered_listed_and_removed(self) -> None:
        with rallypoint.Announcer("Größe 七", port=8190, lobbies=LOBBY, slots=24) as announcer:
            announcer.set_occupancy(slots=24, players=3)
            announcer.set_key("map", "ctf_truefort")

            def is_listed() -> bool:
                found = [server for server in rallypoint.list_servers(LOBBY) if server.name == "Größe 七"]
                return [(one.players, one.max_players, one.map) for one in found] == [(3, 24, "ctf_truefort")]

            eventually("the server is listed", is_listed)
            self.assertGreater(announcer.registrations_sent, 0)
            names = [server.name for server in asyncio.run(aio.list_servers(LOBBY))]
            self.assertIn("Größe 七", names)
        eventually("it is removed", lambda: all(one.name != "Größe 七" for one in rallypoint.list_servers(LOBBY)))

    def test_a_scan_finds_a_server_that_answers(self) -> None:
        async def main() -> List[rallypoint.ScannedServer]:
            async with aio.Server(game="tag", listen="127.0.0.1:0") as server:
                server.set_info(name="answering", players=1, max_players=2)
                port = int(server.local_address().rsplit(":", 1)[1])
                with rallypoint.Announcer("answering", port=port, lobbies=LOBBY) as announcer:
                    announcer.set_key("x-query", "session")
                    for _ in range(PATIENCE * 10):
                        found = [one async for one in aio.scan("lobby://%s/gg2" % LOBBY, detail=Detail.INFO)]
                        answered = [one for one in found if one.answered and one.name == "answering"]
                        if answered:
                            return answered
                        await asyncio.sleep(0.1)
            return []

        (found,) = asyncio.run(main())
        self.assertEqual((found.players, found.max_players), (1, 2))


if __name__ == "__main__":
    unittest.main()
