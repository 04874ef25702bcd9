"""Plays scenarios in batches, confirms what differs, shrinks it, and says it."""

import asyncio
import hashlib
import json
import pathlib
import re
import time

from judging import SAID, Sightings
from shrinking import shrunk

STORE = pathlib.Path(__file__).resolve().parent.parent.parent / "target/beside"
# A difference is believed when it shows in so many plays more.
PLAYS_MORE = 4
# What is not the same each time is played so often more: chance may look like a difference for a while.
PLAYS_MORE_UNSTEADY = 12
# A program that cannot run refuses everything, and so both are alike. Grammars write a few wrong lines on purpose.
REFUSED_SHARE_MAX = 0.25
# At the end of a run, with nothing beside it, so often again: what differs under load alone is chance, too.
PLAYS_ALONE = 12
# Shrinking plays so many candidates of one start.
SHRINK_AT_A_TIME = 30


class Search:
    """What was found so far."""

    def __init__(self, programs, known, wanted):
        self.programs, self.known, self.wanted = programs, known, wanted
        self.passed, self.failed, self.kinds, self.refused = 0, 0, {}, 0
        self.began, self.reported, self.shrunk = time.monotonic(), 0, {}
        self.suspects = []
        STORE.mkdir(parents=True, exist_ok=True)

    async def for_a_time(self, scenarios):
        """Two batches at a time: while one waits for a timeout, the other plays."""
        deadline = time.monotonic() + self.wanted.seconds
        left = self.wanted.count

        async def worker():
            nonlocal left
            while (time.monotonic() < deadline) if left is None else (left > 0):
                size = self.wanted.batch if left is None else min(left, self.wanted.batch)
                left = None if left is None else left - size
                await self.these([next(scenarios) for _ in range(size)])

        await asyncio.gather(worker(), worker())

    async def these(self, scenarios):
        """Plays scenarios, and those that differ again, in a smaller batch."""
        sightings = [Sightings() for _ in scenarios]
        await self.play(scenarios, sightings)
        for scenario, each in zip(scenarios, sightings):
            self.refused += each.plays[0]["haproxy"].get("start") == "refused"
            if self.wanted.verbose:
                print(json.dumps(scenario), "\n", json.dumps(each.plays[0], indent=1))
        suspects = list(zip(scenarios, sightings))
        for _ in range(PLAYS_MORE):
            suspects = [(scenario, each) for scenario, each in suspects if self.left(scenario, each)]
            await self.play(*zip(*suspects)) if suspects else None
        for _ in range(PLAYS_MORE_UNSTEADY):
            unsteady = [pair for pair in suspects if not pair[1].is_steady and self.left(*pair)]
            await self.play(*zip(*unsteady)) if unsteady else None
        suspects = [suspect for suspect in suspects if self.left(*suspect)]
        for scenario, each in suspects:
            print(f"suspect: {scenario.get('origin', 'replayed')}: {kind_of(self.left(scenario, each))[:160]}", flush=True)
        self.suspects += suspects
        self.passed += len(scenarios) - len(suspects)

    async def judge(self):
        """Plays each suspect alone, and says what still differs."""
        for scenario, each in self.suspects:
            for _ in range(PLAYS_ALONE):
                if self.left(scenario, each):
                    await self.play([scenario], [each])
            if found := self.left(scenario, each):
                await self.differing(scenario, found, each.plays[-1])
            else:
                self.passed += 1
        self.suspects = []

    async def play(self, scenarios, sightings):
        for each, outcome in zip(sightings, await self.programs.play(scenarios)):
            each.add(outcome)

    def left(self, scenario, sightings):
        return self.known.unexplained(scenario, sightings.differences())

    async def differing(self, scenario, found, last):
        self.failed += 1
        kind = kind_of(found)
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if self.kinds[kind] > 1:
            return
        self.reported += 1
        # A crowd that is made smaller is one no more.
        if self.reported <= self.wanted.shrink and not scenario.get("counted"):
            await self.report(scenario, found, last)
        else:
            self.say(scenario, found, last)

    async def report(self, scenario, found, last):
        smaller = await shrunk(scenario, lambda candidates: self.still(candidates, found))
        again = Sightings()
        for _ in range(1 + PLAYS_MORE):
            await self.play([smaller], [again])
        if left := self.left(smaller, again):
            kind = kind_of(left)
            self.shrunk[kind] = self.shrunk.get(kind, 0) + 1
            if self.shrunk[kind] > 1:
                return
            scenario, found = smaller, left
            last = again.plays[-1]
        self.say(scenario, found, last)

    async def still(self, candidates, found):
        """Which candidates show the same kind of difference, twice."""
        wanted = family(found[0])
        verdicts = []
        for at in range(0, len(candidates), SHRINK_AT_A_TIME):
            part = candidates[at : at + SHRINK_AT_A_TIME]
            sightings = [Sightings() for _ in part]
            holds = [True] * len(part)
            for _ in range(2):
                live = [number for number, held in enumerate(holds) if held]
                await self.play([part[n] for n in live], [sightings[n] for n in live])
                for n in live:
                    holds[n] = wanted in map(family, self.left(part[n], sightings[n]))
            verdicts += holds
        return verdicts

    def say(self, scenario, found, last):
        text = json.dumps(scenario)
        file = STORE / f"{hashlib.sha256(text.encode()).hexdigest()[:10]}.json"
        file.write_text(text)
        print(f"DIFFERS ({scenario.get('name')}, first {scenario.get('origin')})")
        print(readable(scenario))
        for difference in found[:8]:
            print(f"  {difference.place}\n    haproxy {difference.haproxy[:300]}\n    ballast {difference.ballast[:300]}")
        for name, side in last.items():
            for text in side.get(SAID, []):
                print(f"  {name} says: {text[:300]}")
        shown = file.relative_to(STORE.parent.parent)
        print(f"  again: bench/beside/run --replay {shown}\n", flush=True)

    def finish(self):
        """The last lines; the exit status."""
        for name, count in sorted(self.known.used.items()):
            print(f"known: {name}: {count} differences")
        seconds = time.monotonic() - self.began
        for kind, count in sorted(self.kinds.items(), key=lambda item: -item[1]):
            if count > 1:
                print(f"{count} times: {kind[:200]}")
        print(f"{self.programs.played} plays on each program in {seconds:.0f} s; HAProxy refused {self.refused}")
        total = self.passed + self.failed
        print(f"{self.passed} passed, {self.failed} failed")
        if self.refused > REFUSED_SHARE_MAX * total:
            print(f"beside: HAProxy refused {self.refused} of {total}: what does not run is not compared")
            return 1
        return 1 if self.failed else 0


def family(difference):
    """A difference without numbers: what shows in which place, and which side lacks it."""
    place = re.sub(r"\.(stream )?\d+", "", difference.place)
    if place == "start":
        return place, difference.haproxy[:60], difference.ballast[:60]
    return place, difference.haproxy == "nothing", difference.ballast == "nothing"


def kind_of(found):
    """What differences of one cause have in common, as far as can be told: the first place, with its values."""
    first = found[0]
    values = [re.sub(r"\d+", "N", text)[:120] for text in (first.haproxy, first.ballast)]
    return f"{re.sub(r'[.][0-9]+', '', first.place)} {values[0]} {values[1]}"


def readable(scenario):
    """A scenario as somebody reads it: the configuration, then who does what."""
    lines = [f"    {line}" for line in scenario.get("global", [])]
    lines += ["  defaults", *[f"    {line}" for line in scenario.get("defaults", [])]]
    for section in scenario["sections"]:
        lines += [f"  {section['head']}", *[f"    {line}" for line in section["lines"]]]
    for name, content in scenario.get("files", {}).items():
        lines.append(f"  file {name}: {content!r}")
    for name, server in scenario.get("servers", {}).items():
        lines.append(f"  server {name}: {json.dumps({k: v for k, v in server.items()})[:400]}")
    clients = scenario.get("clients", [])
    if scenario.get("counted"):
        lines.append(f"  {len(clients)} clients at once, as this one")
        clients = clients[:1]
    for client in clients:
        lines.append(f"  client of {client['to']} ({client['speaks']}):")
        lines += [f"    {json.dumps(step)[:300]}" for step in client["steps"]]
    lines += [f"  asked: {text}" for text in scenario.get("ask", [])]
    return "\n".join(lines)
