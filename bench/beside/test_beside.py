"""Tests of the parts that judge: header blocks, messages, what is left out, what counts as a difference."""

import asyncio
import contextlib
import io
import pathlib
import tomllib
import types
import unittest

import counting
import hpack
import judging
import messages
import named
import searching
import shrinking
from grammars.common import site
from rows_tested import ABSURD, KEYS, ROWS

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


class Two:
    """Programs that answer differently, for a search."""

    async def play(self, scenarios):
        return [{"haproxy": {"log": ["200"]}, "ballast": {"log": ["503"]}} for _ in scenarios]


class Searching(unittest.TestCase):
    def test_a_scenario_that_is_replayed_needs_no_origin(self):
        wanted = types.SimpleNamespace(verbose=False, shrink=0)
        search = searching.Search(Two(), judging.Known(), wanted)

        async def played():
            await search.these([site()])
            await search.judge()

        with contextlib.redirect_stdout(io.StringIO()) as said:
            asyncio.run(played())
        self.assertIn("suspect: ", said.getvalue())
        self.assertEqual(search.failed, 1)


class Judging(unittest.TestCase):
    def test_places_are_named(self):
        found = judging.differences({"log": ["a", "b"]}, {"log": ["a", "c"]})
        self.assertEqual([(f.place, f.haproxy, f.ballast) for f in found], [("log.1", '"b"', '"c"')])

    def test_bytes_of_heads_are_counted_in_two_ways(self):
        self.assertEqual(judging.differences({"bin": "118", "req_tot": "2"}, {"bin": "100", "req_tot": "2"}), [])
        self.assertEqual(len(judging.differences({"bin": "9118"}, {"bin": "100"})), 1)

    def places(self, *connections, kind="requests"):
        """Where two programs differ whose servers saw these connections: lists of what they carried, or all of them."""

        def whole(each):
            return each if isinstance(each, dict) else {kind: each, "end": "open"}

        one, other = ({"servers": {"s1": [whole(each) for each in side]}} for side in connections)
        return [each.place for each in judging.differences(one, other)]

    def test_the_same_requests_over_other_connections_are_one_difference(self):
        for kind in ("requests", "streams"):
            spread = self.places([[["a"], ["b"]], [["c"]]], [[["a"]], [["c"], ["b"]]], kind=kind)
            self.assertEqual(spread, ["servers.s1.spread"])
            others = self.places([[["a"], ["b"]], [["c"]]], [[["a"]], [["c"], ["d"]]], kind=kind)
            self.assertEqual(others, [f"servers.s1.0.{kind}", f"servers.s1.1.{kind}"])
        self.assertEqual(self.places([[["a"], ["b"]], [["c"]]], [[["a"], ["b"], ["c"]]]), ["servers.s1"])

    def test_what_stands_behind_requests_and_how_a_connection_ends_goes_with_them(self):
        def one(*requests, end="open", **more):
            return {"requests": [[request] for request in requests], "end": end, **more}

        tunnel = {"after them": "hello"}
        found = self.places([one("a", "up", **tunnel), one("b")], [one("a"), one("b", "up", **tunnel)])
        self.assertEqual(found, ["servers.s1.spread"])
        self.assertNotIn("servers.s1.spread", self.places([one("a", "up", **tunnel), one("b")], [one("a"), one("b", "up")]))
        self.assertNotIn("servers.s1.spread", self.places([one("a", "up", **tunnel), one("b")], [one("a", **tunnel), one("b", "up")]))
        unread = {"after them": "PUT /a HTTP/1.1\r\nhost: a\r\n\r\n"}
        self.assertEqual(self.places([one("a", **unread), one("b")], [one("a"), one("b", **unread)]), ["servers.s1.spread"])
        ended = {"end": "ended"}
        self.assertEqual(self.places([one("a", "c", **ended), one("b")], [one("a"), one("b", "c", **ended)]), ["servers.s1.spread"])
        found = self.places([one("a", "c", **ended), one("b")], [one("a"), one("b", "c")])
        self.assertEqual(found, ["servers.s1.spread", "servers.s1.0.end"])

    def test_tries_of_one_request_are_counted_once(self):
        def counts(failed):
            row = {"app s2": {"eresp": str(4 * failed), "hrsp_5xx": str(failed)}}
            requests = [{"requests": [["GET /"]]}] * (3 * failed)
            seen = {"clients": [], "servers": {"s2": requests}, "log": [], "stat": row}
            return counting.counted(seen, {"defaults": ["retries 2"], "sections": []})

        self.assertEqual(counts(120), {"requests of s2": 120, "app s2.eresp": 160, "app s2.hrsp_5xx": 120})
        self.assertEqual(judging.differences({"counted": counts(122)}, {"counted": counts(64)}), [])
        self.assertNotEqual(judging.differences({"counted": counts(122)}, {"counted": counts(10)}), [])

    def test_counts_differ_beyond_chance_only(self):
        self.assertEqual(judging.differences({"counted": {"a": 100}}, {"counted": {"a": 130, "b": 3}}), [])
        found = judging.differences({"counted": {"a": 100, "b": 100}}, {"counted": {"a": 230, "b": 10}})
        self.assertEqual([each.place for each in found], ["counted.a", "counted.b"])

    def test_lines_are_compared_wherever_they_stand(self):
        found = judging.differences({"log": ["a", "GET b 504"]}, {"log": ["GET b 400", "a"]})
        self.assertEqual(found, [judging.Difference("log.1", '"GET b 504"', '"GET b 400"')])
        self.assertEqual(judging.differences({"log": ["a", "b"]}, {"log": ["b", "a"]}), [])
        self.assertEqual(len(judging.differences({"log": ["a", "a"]}, {"log": ["a", "b"]})), 1)
        self.assertEqual(judging.differences({"log": ["a"]}, {"log": []})[0].place, "log")

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

    def explained(self, row, scenario, *differences):
        known = judging.Known()
        known.rows = {"row": {"place": "."} | row}
        return [known.explains(scenario, judging.Difference(*each)) == "row" for each in differences]

    def test_a_row_with_both_says_how_far_the_two_are_the_same(self):
        row = {"both": r'^"(.*) CD--" => "\1 ----"$'}
        pairs = (('"GET 200 CD--"', '"GET 200 ----"'), ('"GET 200 CD--"', '"GET 503 ----"'))
        self.assertEqual(self.explained(row, {}, *[("log.0", *pair) for pair in pairs]), [True, False])

    def test_a_row_with_more_says_whose_number_is_larger(self):
        pairs = (('"7"', '"5"'), ('"7"', "nothing"), ('"5"', '"7"'), ("nothing", '"7"'), ('"a"', '"5"'))
        seen = self.explained({"more": "haproxy"}, {}, *[("stat", *pair) for pair in pairs])
        self.assertEqual(seen, [True, True, False, False, False])

    def test_a_row_with_same_words_explains_their_order(self):
        pairs = (('"GET / 1\\r\\na: b\\r\\nc: d"', '"GET / 1\\r\\nc: d\\r\\na: b"'), ('"a: b\\r\\nc: d"', '"c: d\\r\\ne: b"'))
        self.assertEqual(self.explained({"same_words": True}, {}, *[("x", *pair) for pair in pairs]), [True, False])

    def test_a_row_with_client_looks_at_the_one_whose_place_it_is(self):
        scenario = {"clients": [{"steps": [["reset"]]}, {"steps": [["read"]]}], "servers": {"s1": [["cancel"]]}}
        places = [(place, "1", "2") for place in ("clients.0.end", "clients.1.end", "log.0")]
        self.assertEqual(self.explained({"client": r'\["reset"\]'}, scenario, *places), [True, False, True])
        self.assertEqual(self.explained({"client": r'\["cancel"\]'}, scenario, *places), [False, False, False])

    def test_a_row_with_also_explains_these_places_and_no_others(self):
        known = judging.Known()
        known.rows = {"row": {"place": "^clients", "ballast": "400", "also": "^log"}}
        places = (("log.0", "400"), ("clients.0", "400"), ("servers", "1"))
        found = [judging.Difference(place, "200", text) for place, text in places]
        self.assertEqual([each.place for each in known.unexplained({}, found)], ["servers"])
        self.assertEqual(known.unexplained({}, found[:1]), found[:1])

    def test_rows_have_reasons_and_name_scripts(self):
        scripts = tomllib.loads((ROOT / "tests/conformance/deviations.toml").read_text())
        for name, row in judging.Known().rows.items():
            self.assertTrue(row.get("reason"), name)
            self.assertTrue({"place", "haproxy", "ballast"} & set(row), name)
            self.assertLessEqual(set(row), KEYS, name)
            if "script" in row:
                self.assertIn(row["script"], scripts, name)

    def test_no_row_explains_what_differs_in_a_plain_scenario(self):
        known = judging.Known()
        rows = known.rows
        for scenario in (named.SCENARIOS["plain-exchange"](), named.SCENARIOS["plain-exchange-h2"]()):
            for name, row in rows.items():
                known.rows = {name: row}
                for difference in ABSURD:
                    self.assertIsNone(known.explains(scenario, judging.Difference(*difference)), difference)

    def test_rows_explain_what_they_name_and_nothing_more(self):
        known = judging.Known()
        rows = known.rows
        for name, scenario, explained, *not_explained in ROWS:
            known.rows = {name: rows[name]}
            with self.subTest(name):
                self.assertEqual(known.explains(scenario, judging.Difference(*explained)), name, explained)
                known.rows = rows
                for difference in not_explained:
                    self.assertIsNone(known.explains(scenario, judging.Difference(*difference)), difference)


if __name__ == "__main__":
    unittest.main()
