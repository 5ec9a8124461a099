# -*- coding: utf-8 -*-
"""Compares rallypoint_lobby with the golden datagrams: test_rallypoint_lobby.py VECTORS.json"""

from __future__ import print_function, unicode_literals

import binascii
import collections
import io
import json
import sys
import unittest

import rallypoint_lobby

CASES = []


def value(text):
    return binascii.unhexlify(text["hex"]) if isinstance(text, dict) else text


class GoldenDatagrams(unittest.TestCase):
    def cases(self, kind):
        found = [case for case in CASES if case["kind"] == kind]
        self.assertTrue(found)
        return found

    def test_registrations_are_written_as_other_programs_write_them(self):
        # What a sender cannot produce: reserved flags, keys that occur twice, bytes after the table, the older layout.
        only_parsed = ["reserved flag", "duplicate key", "bytes after", "older layout"]
        compared = 0
        for case in self.cases("register"):
            if "value" not in case or any(part in case["name"] for part in only_parsed):
                continue
            fields = case["value"]
            registration = rallypoint_lobby.Registration(
                fields["port"], fields["slots"], fields["players"], fields["bots"], fields["password"],
                {"tcp": rallypoint_lobby.TCP, "udp": rallypoint_lobby.UDP}[fields["transport"]],
                collections.OrderedDict((value(key), value(text)) for key, text in fields["entries"]),
                fields["lobby_id"], fields["server_id"])
            self.assertEqual(binascii.hexlify(registration.datagram()).decode(), case["bytes"], case["name"])
            compared += 1
        self.assertGreaterEqual(compared, 6)

    def test_an_unregistration(self):
        case = self.cases("unregister")[0]
        registration = rallypoint_lobby.Registration(1, server_id=case["value"]["server_id"])
        self.assertEqual(binascii.hexlify(registration.unregistration()).decode(), case["bytes"])

    def test_lists_are_read(self):
        for case in self.cases("list_reply"):
            reply = binascii.unhexlify(case["bytes"])
            if "value" not in case:
                self.assertRaises(rallypoint_lobby.LobbyError, rallypoint_lobby.parse_list, reply)
                continue
            servers = rallypoint_lobby.parse_list(reply)
            self.assertEqual(len(servers), len(case["value"]))
            for server, expected in zip(servers, case["value"]):
                for field in ["slots", "players", "bots", "password"]:
                    self.assertEqual(getattr(server, field), expected[field])
                endpoints = ["%s:%d" % (("[%s]" if ":" in ip else "%s") % ip, port) for ip, port in server.endpoints]
                self.assertEqual(endpoints, [text for text in (expected["ipv4"], expected["ipv6"]) if text])
                for key, text in expected["entries"]:
                    text = value(text)
                    self.assertEqual(server.info[key], text if isinstance(text, bytes) else text.encode("utf-8"))

    def test_every_truncated_list_is_refused(self):
        for case in self.cases("list_reply"):
            reply = binascii.unhexlify(case["bytes"]) if "value" in case else b""
            for length in range(len(reply)):
                self.assertRaises(rallypoint_lobby.LobbyError, rallypoint_lobby.parse_list, reply[:length])


class Registrations(unittest.TestCase):
    def test_mistakes_are_reported(self):
        for arguments, problem in [
                (dict(port=0, info={"name": "x"}), "port is 0"),
                (dict(port=1, info={}), "no name"),
                (dict(port=1, players=-1, info={"name": "x"}), "players is -1"),
                (dict(port=1, lobby="gg2", info={"name": "x"}), "neither a UUID"),
                (dict(port=1, info={"name": "x" * 65536}), "too long")]:
            try:
                rallypoint_lobby.Registration(**arguments).datagram()
                self.fail("no error for %r" % arguments)
            except ValueError as error:
                self.assertIn(problem, "%s" % error)

    def test_only_what_is_due_is_sent(self):
        server = rallypoint_lobby.Announcer("127.0.0.1", 1, lobby_port=9, info={"name": "x"})
        self.assertEqual([server.update(now) for now in (0, 1, 29.9, 30, 59)], [True, False, False, True, False])
        server.players = 1
        self.assertEqual([server.update(now) for now in (59.1, 59.2, 60.0, 89.5)], [True, False, False, True])
        server.close()

    def test_a_name_is_shown_without_control_characters(self):
        server = rallypoint_lobby.Server(0, [], 0, 0, 0, False, {"name": b"a\x1b[31m\xff"})
        self.assertEqual(server.name, "a [31m\ufffd")


if __name__ == "__main__":
    with io.open(sys.argv.pop(1), encoding="utf-8") as file:
        CASES = json.load(file)["cases"]
    unittest.main()
