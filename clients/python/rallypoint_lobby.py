# -*- coding: utf-8 -*-
"""Register a game server in a lobby, and list the servers of one.

One file without dependencies, for Python 2.7 and every Python 3. Copy it into your game.

Register a server:

    import rallypoint_lobby

    server = rallypoint_lobby.Announcer("lobby.example.org", port=8190, slots=24, info={"name": "Bacon Town"})
    while game_runs:
        server.players = len(players)
        server.info["map"] = current_map
        server.update()            # once per frame: sends only when there is something to send
    server.close()                 # leaves the list at once

List the servers:

    for server in rallypoint_lobby.list_servers("lobby.example.org"):
        print("%s  %d/%d  %s" % (server.name, server.players, server.slots, server.endpoints))

Nothing here starts a thread. `update` never waits, except for the name lookup of the first call; `list_servers` waits
for the lobby, at most `timeout` seconds.
"""

from __future__ import print_function, unicode_literals

import binascii
import os
import re
import socket
import struct
import sys
import time

__all__ = ["Announcer", "Registration", "Server", "LobbyError", "list_servers", "parse_list", "GANG_GARRISON_2"]

DEFAULT_PORT = 29944

#: The list of Gang Garrison 2 and its mods. Another game uses a random UUID of its own.
GANG_GARRISON_2 = "1ccf16b1-436d-856f-504d-cc1af306aaa7"

TCP, UDP = 0, 1

#: A lobby removes a server 70 seconds after its last registration, so one may be lost.
REFRESH_INTERVAL = 30.0
#: Changes are sent at most this often: lobbies limit the rate of an address.
CHANGE_INTERVAL = 1.0

_REGISTER = binascii.unhexlify("b5dae2e8424f9ed00fcb8c21c7ca1352")
_UNREGISTER = binascii.unhexlify("488984ac45dc86e1990198dd1c01c064")
_LIST = binascii.unhexlify("297d0df4430cbf61640a640897eaef57")


class LobbyError(Exception):
    """A lobby could not be reached, or its reply is not a list."""


class Registration(object):
    """What a lobby shows of a server. Texts are Unicode; a value of `info` may also be `bytes`."""

    def __init__(self, port, slots=0, players=0, bots=0, password=False, transport=TCP, info=None,
                 lobby=GANG_GARRISON_2, server_id=None):
        self.port = port
        self.slots = slots
        self.players = players
        self.bots = bots
        self.password = password
        self.transport = transport
        self.info = info.copy() if info else {}
        self.lobby = lobby
        #: Known to the server and the lobby only: with it, anyone could unregister the server.
        self.server_id = server_id if server_id is not None else os.urandom(16)

    def datagram(self):
        """The datagram that registers or refreshes the server."""
        if not 1 <= self.port <= 65535:
            raise ValueError("port is %r, but must be from 1 to 65535" % (self.port,))
        if "name" not in self.info:
            raise ValueError("info has no name: a lobby refuses a server without one")
        parts = [
            _REGISTER,
            _uuid(self.server_id),
            _uuid(self.lobby),
            struct.pack(
                str(">BHHHHHH"), self.transport, self.port, _uint16("slots", self.slots),
                _uint16("players", self.players), _uint16("bots", self.bots), int(bool(self.password)),
                _uint16("number of keys", len(self.info))),
        ]
        for key in self.info:
            name, value = _bytes(key), self._value(key)
            if len(name) > 255 or len(value) > 65535:
                raise ValueError("the key %r or its value is too long" % key)
            parts += [struct.pack(str(">B"), len(name)), name, struct.pack(str(">H"), len(value)), value]
        return b"".join(parts)

    def unregistration(self):
        """The datagram that removes the server from the list."""
        return _UNREGISTER + _uuid(self.server_id)

    def _value(self, key):
        value = self.info[key]
        return _uuid(value) if key == "protocol_id" else _bytes(value)


class Announcer(Registration):
    """Keeps a server in the list of a lobby, for as long as `update` is called."""

    def __init__(self, host, port, lobby_port=DEFAULT_PORT, **registration):
        Registration.__init__(self, port, **registration)
        self._lobby_address = (host, lobby_port)
        self._targets = None
        self._sent = None
        self._sent_at = None
        self.datagram()  # reports what is wrong now instead of in the middle of a game

    def update(self, now=None):
        """Sends what is due. Returns whether anything was sent. Errors of the network pass: the next call retries."""
        now = _monotonic() if now is None else now
        datagram = self.datagram()
        if self._sent_at is not None:
            interval = REFRESH_INTERVAL if datagram == self._sent else CHANGE_INTERVAL
            if now - self._sent_at < interval:
                return False
        self._sent, self._sent_at = datagram, now
        return self._send(datagram)

    def close(self):
        """Removes the server from the list."""
        if self._sent is not None:
            self._send(self.unregistration())
            self._sent = self._sent_at = None
        for sock, _ in self._targets or []:
            sock.close()
        self._targets = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _send(self, datagram):
        if not self._targets:
            self._targets = _udp_targets(*self._lobby_address)
        sent = False
        for sock, address in self._targets:
            try:
                sock.sendto(datagram, address)
                sent = True
            except (socket.error, OSError):
                pass  # no route by this family, or an ICMP error of an earlier datagram
        return sent


class Server(object):
    """A listed server."""

    def __init__(self, transport, endpoints, slots, players, bots, password, info):
        self.transport = transport
        #: `(address, port)` for IPv4 and IPv6, as far as known.
        self.endpoints = endpoints
        self.slots = slots
        self.players = players
        self.bots = bots
        self.password = password
        #: All keys with their values as bytes: strangers write them, so expect anything.
        self.info = info

    def text(self, key, default=""):
        """The value of a key, without control characters, so that it can be shown."""
        value = self.info.get(key)
        return default if value is None else re.sub("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", " ",
                                                    value.decode("utf-8", "replace"))

    @property
    def name(self):
        return self.text("name")

    def __repr__(self):
        return str("<Server %s %r>") % (self.endpoints, self.info.get("name"))


def list_servers(host, lobby_port=DEFAULT_PORT, lobby=GANG_GARRISON_2, timeout=10.0, max_bytes=64 << 20):
    """The servers in a list of a lobby. Raises `LobbyError` if there is no complete reply in time."""
    end = _monotonic() + timeout
    chunks, size = [], 0
    try:
        sock = socket.create_connection((host, lobby_port), timeout)
        try:
            sock.sendall(_LIST + _uuid(lobby))
            while True:
                left = end - _monotonic()
                if left <= 0:
                    raise LobbyError("the lobby %s:%d did not send its whole list within %g s" % (host, lobby_port, timeout))
                sock.settimeout(left)
                chunk = sock.recv(65536)
                if not chunk:
                    break
                chunks.append(chunk)
                size += len(chunk)
                if size > max_bytes:
                    raise LobbyError("the list of %s:%d is larger than %d bytes" % (host, lobby_port, max_bytes))
        finally:
            sock.close()
    except (socket.error, OSError) as error:
        raise LobbyError("cannot read the list of %s:%d: %s" % (host, lobby_port, error))
    return parse_list(b"".join(chunks))


def parse_list(reply):
    """Parses the reply to a list request. Raises `LobbyError` if it is not one."""
    count, offset = _unpack(">I", reply, 0)[0], 4
    servers = []
    while len(servers) < count:
        length = _unpack(">I", reply, offset)[0]
        offset += 4
        if length > len(reply) - offset:
            raise LobbyError("the list ends in the middle of a server")
        servers.append(_parse_server(reply[offset:offset + length]))
        offset += length
    if offset != len(reply):
        raise LobbyError("the list has bytes after its last server")
    return servers


def _parse_server(block):
    transport, port4, ip4, port6, ip6, slots, players, bots, flags, keys = _unpack(">BH4sH16sHHHHH", block, 0)
    offset, info = 35, {}
    for _ in range(keys):
        length = _unpack(">B", block, offset)[0]
        key = block[offset + 1:offset + 1 + length]
        offset += 1 + length
        length = _unpack(">H", block, offset)[0]
        value = block[offset + 2:offset + 2 + length]
        offset += 2 + length
        if offset > len(block):
            raise LobbyError("a server in the list ends in the middle of a key")
        info[key.decode("utf-8", "replace")] = value
    endpoints = []
    if port4:
        endpoints.append((".".join("%d" % byte for byte in bytearray(ip4)), port4))
    if port6:
        groups = struct.unpack(str(">8H"), ip6)
        endpoints.append((_ipv6(groups), port6))
    return Server(transport, endpoints, slots, players, bots, bool(flags & 1), info)


def _ipv6(groups):
    """The text of an IPv6 address. `socket.inet_ntop` does not exist in Python 2.7 on Windows."""
    text = ":".join("%x" % group for group in groups)
    zeros = max(re.findall("(?:^|:)(?:0(?::|$)){2,}", text) or [""], key=len)
    return text.replace(zeros, "::", 1) if zeros else text


def _udp_targets(host, port):
    """A socket and an address for each family by which the lobby can be reached."""
    targets = {}
    try:
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_DGRAM)
    except (socket.error, OSError, UnicodeError):
        return []
    for family, kind, protocol, _, address in found:
        if family in (socket.AF_INET, socket.AF_INET6) and family not in targets:
            try:
                sock = socket.socket(family, kind, protocol)
                sock.setblocking(False)
                targets[family] = (sock, address)
            except (socket.error, OSError):
                pass
    return list(targets.values())


def _unpack(layout, data, offset):
    try:
        return struct.unpack_from(str(layout), data, offset)
    except struct.error:
        raise LobbyError("the list ends too early")


def _uint16(what, value):
    if not 0 <= value <= 65535:
        raise ValueError("%s is %r, but must be from 0 to 65535" % (what, value))
    return value


def _bytes(value):
    return value if isinstance(value, bytes) else ("%s" % value).encode("utf-8")


def _uuid(value):
    """16 bytes, from bytes or from a text such as 1ccf16b1-436d-856f-504d-cc1af306aaa7."""
    if not isinstance(value, bytes) or len(value) != 16:
        text = value.decode("ascii", "replace") if isinstance(value, bytes) else "%s" % value
        text = text.replace("-", "")
        if not re.match("^[0-9a-fA-F]{32}$", text):
            raise ValueError("%r is neither a UUID nor 16 bytes" % (value,))
        value = binascii.unhexlify(text.encode("ascii"))
    return value


_monotonic = getattr(time, "monotonic", time.time)


def _main():
    import argparse

    parser = argparse.ArgumentParser(description="Lists the servers of a lobby, or registers one until Ctrl-C.")
    parser.add_argument("lobby", metavar="HOST[:PORT]")
    parser.add_argument("--list", default=GANG_GARRISON_2, metavar="UUID", help="the list; default: Gang Garrison 2")
    parser.add_argument("--register", metavar="NAME", help="register a server of this name")
    parser.add_argument("--port", type=int, help="its port")
    parser.add_argument("--udp", action="store_true", help="its port is a UDP port")
    parser.add_argument("--slots", type=int, default=0)
    options = parser.parse_args()
    host, _, port = options.lobby.partition(":")
    port = int(port or DEFAULT_PORT)
    if options.register is None:
        try:
            servers = list_servers(host, port, options.list)
        except LobbyError as error:
            parser.exit(1, "%s\n" % error)
        for server in servers:
            address = "  ".join("%s port %d" % endpoint for endpoint in server.endpoints)
            _print("%d/%d  %s  %s" % (server.players, server.slots, server.name, address))
    else:
        if options.port is None:
            parser.error("--register needs --port")
        transport = UDP if options.udp else TCP
        with Announcer(host, options.port, port, slots=options.slots, transport=transport, lobby=options.list,
                       info={"name": options.register}) as server:
            print("registering with %s:%d; Ctrl-C removes the server from the list" % (host, port))
            sys.stdout.flush()
            status, checks = None, 0
            try:
                while True:
                    if server.update():
                        checks = LISTING_CHECKS
                    elif checks > 0:
                        checks -= 1
                        is_listed, text = _listing(server, host, port)
                        if is_listed:
                            checks = 0
                        if checks == 0 and text != status:
                            status = text
                            print(status)
                            sys.stdout.flush()
                    time.sleep(1)
            except KeyboardInterrupt:
                pass


def _print(text):
    """Prints a line that may have any letters: Python 2 writes only ASCII to a pipe, other systems their own set of letters."""
    encoding = sys.stdout.encoding or "utf-8"
    line = text.encode(encoding, "replace") + b"\n"
    getattr(sys.stdout, "buffer", sys.stdout).write(line)
    sys.stdout.flush()


#: Checks of the list after a registration, one per second: a lobby takes up to five to find out that it cannot reach a server.
LISTING_CHECKS = 6


def _listing(server, host, port):
    """Whether the lobby lists a server, and that in one line."""
    try:
        servers = list_servers(host, port, server.lobby)
    except LobbyError as error:
        return False, "%s" % error
    for listed in servers:
        if listed.info.get("name") == _bytes(server.info["name"]) and server.port in [it for _, it in listed.endpoints]:
            return True, "listed"
    return False, ("not listed: is the game running, and can the lobby reach its port %d? "
                   "The page of the lobby has the reason at /why" % server.port)


if __name__ == "__main__":
    _main()
