"""Tests of the parts that judge: header blocks, messages, what is left out, what counts as a difference."""

import asyncio
import pathlib
import tomllib
import unittest

import hpack
import judging
import messages
import shrinking

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class HeaderBlocks(unittest.TestCase):
    """RFC 7541, appendix C."""

    def test_plain_literals_come_back(self):
        fields = [(":method", "GET"), ("x-long", "v" * 300), ("empty", "")]
        self.assertEqual(hpack.Decoder().decode(hpack.encoded(fields)), fields)

    def test_requests_with_huffman_codes_share_a_table(self):
        decoder = hpack.Decoder()
        first = decoder.decode(bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff"))
        self.assertEqual(first[3], (":authority", "www.example.com"))
        second = decoder.decode(bytes.fromhex("828684be5886a8eb10649cbf"))
        self.assertEqual(second[3:], [(":authority", "www.example.com"), ("cache-control", "no-cache")])

    def test_a_small_table_forgets(self):
        decoder = hpack.Decoder()
        decoder.decode(b"\x40\x01a\x01b")
        decoder.decode(b"\x20")
        with self.assertRaises(ValueError):
            decoder.decode(b"\xbe")

    def test_what_is_cut_is_no_block(self):
        with self.assertRaises(ValueError):
            hpack.Decoder().decode(b"\x00\x05ab")


class Messages(unittest.TestCase):
    def read(self, *pieces):
        received = bytearray()
        reader = messages.Reader(received)
        for piece in pieces:
            received += piece
            if not reader.messages and (message := reader.head()):
                reader.frame(message, True)
            if reader.messages:
                reader.more()
        return reader

    def test_chunks_are_joined_wherever_they_are_cut(self):
        text = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nrest"
        for cut in range(1, len(text)):
            reader = self.read(text[:cut], text[cut:])
            self.assertEqual((bytes(reader.messages[0].body), reader.rest()), (b"abcde", b"rest"), cut)
            self.assertTrue(reader.messages[0].is_whole)

    def test_a_body_that_is_short_is_not_whole(self):
        reader = self.read(b"PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")
        self.assertFalse(reader.messages[0].is_whole)
        self.assertEqual(reader.messages[0].body, b"ab")


class Shrinking(unittest.TestCase):
    SCENARIO = {
        "defaults": ["mode http", "retries 2", "option a"],
        "sections": [{"head": "frontend web", "lines": ["bind x", "http-request deny if { path /a }", "option b"]}],
        "servers": {"s1": {"speaks": "h1", "answers": [[["body"], ["answer", 200, [["X", "1"], ["Y", "2"]], "ok"]]]}},
        "clients": [{"to": "web", "speaks": "h1", "steps": [["ask", {"fields": [["A", "b"]]}], ["read"], ["pause"]]}],
    }

    def shrunk(self, holds):
        async def judge(candidates):
            return [holds(candidate) for candidate in candidates]

        return asyncio.run(shrinking.shrunk(self.SCENARIO, judge))

    def test_only_what_matters_stays(self):
        smaller = self.shrunk(lambda each: "deny" in repr(each) and "'Y'" in repr(each))
        self.assertEqual(smaller["sections"][0]["lines"], ["bind x", "http-request deny"])
        self.assertEqual(smaller["servers"]["s1"]["answers"], [[["answer", 200, [["Y", "2"]], "ok"]]])
        self.assertEqual((smaller["defaults"], smaller["clients"]), (["mode http"], []))

    def test_equal_parts_are_two(self):
        twice = ["a", "b"]
        scenario = self.SCENARIO | {"clients": [{"to": "web", "speaks": "h1", "steps": [], "tls": {"alpn": twice}}] * 2}

        async def judge(candidates):
            return [len(each.get("clients", [])) == 2 for each in candidates]

        self.assertEqual(asyncio.run(shrinking.shrunk(scenario, judge))["clients"][1]["tls"], {"alpn": []})

    def test_steps_and_fields_stay_whole(self):
        smaller = self.shrunk(lambda each: "'A', 'b'" in repr(each))
        self.assertEqual(smaller["clients"][0]["steps"], [["ask", {"fields": [["A", "b"]]}]])


class Judging(unittest.TestCase):
    def test_places_are_named(self):
        found = judging.differences({"log": ["a", "b"]}, {"log": ["a", "c"]})
        self.assertEqual([(f.place, f.haproxy, f.ballast) for f in found], [("log.1", '"b"', '"c"')])

    def test_bytes_of_heads_are_counted_in_two_ways(self):
        self.assertEqual(judging.differences({"bin": "118", "req_tot": "2"}, {"bin": "100", "req_tot": "2"}), [])
        self.assertEqual(len(judging.differences({"bin": "9118"}, {"bin": "100"})), 1)

    def test_counts_differ_beyond_chance_only(self):
        self.assertEqual(judging.differences({"counted": {"a": 100}}, {"counted": {"a": 130, "b": 3}}), [])
        found = judging.differences({"counted": {"a": 100, "b": 100}}, {"counted": {"a": 230, "b": 10}})
        self.assertEqual([each.place for each in found], ["counted.a", "counted.b"])

    def test_what_depends_on_chance_is_no_difference(self):
        sightings = judging.Sightings()
        sightings.add({"haproxy": {"log": ["a"], "end": "x"}, "ballast": {"log": ["b"], "end": "y"}})
        sightings.add({"haproxy": {"log": ["b"], "end": "x"}, "ballast": {"log": ["b"], "end": "y"}})
        self.assertEqual([each.place for each in sightings.differences()], ["end"])

    def test_a_row_with_only_explains_nothing_else(self):
        known = judging.Known()
        known.rows = {"bytes": {"place": "^log", "only": r"\d+$"}}
        seen = [known.explains({}, judging.Difference("log.0", text, "GET 200 13")) for text in ("GET 200 7", "GET 502 7")]
        self.assertEqual(seen, ["bytes", None])

    def test_a_row_with_continues_explains_what_goes_on(self):
        known = judging.Known()
        known.rows = {"more": {"place": "^clients", "continues": True}}
        pairs = (("nothing", '["a"]'), ('["a"]', '["a", "b"]'), ('["a"]', '["b", "a"]'), ('["a"]', "nothing"))
        seen = [known.explains({}, judging.Difference("clients", *pair)) for pair in pairs]
        self.assertEqual(seen, ["more", "more", None, None])

    def test_rows_have_reasons_and_name_scripts(self):
        scripts = tomllib.loads((ROOT / "tests/conformance/deviations.toml").read_text())
        for name, row in judging.Known().rows.items():
            self.assertTrue(row.get("reason"), name)
            self.assertTrue({"place", "haproxy", "ballast"} & set(row), name)
            if "script" in row:
                self.assertIn(row["script"], scripts, name)


if __name__ == "__main__":
    unittest.main()
