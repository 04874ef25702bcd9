"""Tests of what reads the manual, of what writes lines, and of what judges."""

import pathlib
import random
import tempfile
import unittest

import judging
import lists
import manual
import places
import shapes

TEXT = """\
4.2. Keywords
-------------

Some text at the margin, which names a word,
and goes on here.

pause <time> [ { from | to } <port> ]
      [ unless <condition> ]
  Waits.

  Arguments :
    <time>    is how long.

    once      only the first time.

    name <name>  under a name.

7.3.1. Converters
-----------------

turn(<value>[,<text>])
  Turns.
"""


class Manual(unittest.TestCase):
    def test_a_line_at_the_margin_with_text_below_it_is_a_word(self):
        found = manual.entries(TEXT)
        self.assertEqual([(entry.kind, entry.word) for entry in found], [("proxy", "pause"), ("converter", "turn")])
        self.assertEqual(found[0].syntax, "pause <time> [ { from | to } <port> ] [ unless <condition> ]")

    def test_arguments_are_read_from_the_text_below(self):
        self.assertEqual(manual.entries(TEXT)[0].arguments, ("once", "name <name>"))


class Shapes(unittest.TestCase):
    def entry(self, syntax, *arguments):
        return manual.Entry("proxy", syntax, arguments)

    def test_brackets_are_optional(self):
        entry = self.entry("word [ on | off ] last")
        self.assertEqual(shapes.listed(entry, random.Random(1), 0.0)[0], ["word", "last"])
        self.assertIn(shapes.listed(entry, random.Random(1), 1.0)[0], (["word", "on", "last"], ["word", "off", "last"]))

    def test_every_slot_counts_and_one_may_be_broken(self):
        entry = self.entry("word <port> <port>")
        written, slots = shapes.listed(entry, random.Random(1), 1.0, 1)
        self.assertEqual(slots, 2)
        self.assertIn(written[1], ("80", "8443", "1"))
        self.assertNotIn(written[2], ("80", "8443", "1"))

    def test_parameters_are_words_of_the_text_below(self):
        self.assertEqual(shapes.listed(self.entry("word [param*]", "once"), random.Random(1), 1.0)[0], ["word", "once"])

    def test_conditions_and_quoted_words_stay_whole(self):
        self.assertEqual(shapes.words('a "b c" if { path /x }'), ["a", '"b c"', "if", "{ path /x }"])


class Lines(unittest.TestCase):
    def test_the_same_seed_makes_the_same_lines(self):
        one, same, other = ([case.line for case in lists.cases(TEXT, seed, 60)] for seed in ("1", "1", "2"))
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)
        self.assertEqual(len(set(one)), len(one))

    def test_a_line_stands_in_its_section(self):
        text = places.file_of(places.Line("backend", "retries 3"))
        self.assertIn("retries 3", text.partition("backend app")[2])
        self.assertNotIn(places.HERE, text)


class Judging(unittest.TestCase):
    def verdict(self, code, text):
        return judging.verdict("x.cfg", code, text)

    def test_a_verdict_has_the_line_of_the_first_message(self):
        refused = self.verdict(1, "[WARNING]  (7) : config : parsing [x.cfg:2]: old\n[ALERT]    (7) : config : parsing [x.cfg:4] : bad\n")
        self.assertEqual((refused.kind, refused.line), ("refused", 4))
        self.assertEqual(self.verdict(0, "[WARNING]  (7) : config : parsing [x.cfg:2]: old\n").kind, "warned")
        self.assertEqual(self.verdict(0, "").kind, "accepted")
        self.assertEqual(self.verdict(-11, "").kind, "ended with -11")

    def test_lines_are_compared_where_both_name_one(self):
        at_4, at_5, nowhere = (judging.Verdict("refused", line, ()) for line in (4, 5, None))
        self.assertTrue(judging.differ(at_4, at_5))
        self.assertFalse(judging.differ(at_4, nowhere))
        self.assertTrue(judging.differ(at_4, judging.Verdict("warned", 4, ())))

    def test_a_row_explains_what_all_its_patterns_fit(self):
        with tempfile.TemporaryDirectory() as top:
            path = pathlib.Path(top, "known.toml")
            path.write_text('["not carried out"]\nwords = ["cache-use"]\n["a row"]\nword = "^retries$"\nballast = "^refused"\nreason = "it is so"\n')
            known = judging.Known(path)
        case = lists.Case(manual.Entry("proxy", "retries <value>", ()), "plain", places.Line("backend", "retries x"))
        fine = judging.Verdict("accepted", None, ())
        self.assertEqual(known.explains(case, fine, judging.Verdict("refused", 4, ())), "a row")
        self.assertIsNone(known.explains(case, judging.Verdict("refused", 4, ()), fine))
        later = self.verdict(1, "[ALERT]    (7) : config : parsing [x.cfg:4] : 'cache-use' is understood and not carried out: with the cache\n")
        self.assertEqual(later.kind, "later")
        self.assertFalse(judging.differ(judging.Verdict("refused", 4, ()), later))
        self.assertEqual(known.explains(case, fine, later), "cache-use")
        self.assertEqual(known.idle(), [])

    def test_the_rows_are_read(self):
        judging.Known()


if __name__ == "__main__":
    unittest.main()
