"""Plays scenarios on both programs and tells what was seen on each: a batch of them with one start of each program."""

import asyncio
import csv
import itertools
import pathlib
import re
import shutil
import tempfile

from clients import play_client
from counting import counted
from judging import COUNTED, SAID
from parts import Events
from servers import Server
from starting import Plot, Side
from tls import Contexts, make_certificates

# A program whose sessions do not end within this has lost some.
QUIET_SECONDS_MAX = 4.0
# What servers and log receivers still have to read when the sessions have ended.
SETTLE_SECONDS = 0.05
SCENARIO_SECONDS_MAX = 25
COLUMNS = (
    "scur qcur bin bout stot dreq dresp ereq econ eresp wretr wredis status act bck lbtot hrsp_1xx hrsp_2xx hrsp_3xx hrsp_4xx "
    "hrsp_5xx hrsp_other req_tot cli_abrt srv_abrt intercepted conn_tot dcon dses wrew connect reuse cache_lookups cache_hits "
    "eint h1req h2req"
).split()


class Programs:
    """The two programs that are compared."""

    def __init__(self, haproxy, ballast):
        self.paths = {"haproxy": haproxy, "ballast": ballast}
        self.addresses = {"haproxy": "127.0.0.2", "ballast": "127.0.0.3"}
        self.directory = tempfile.mkdtemp(prefix="beside-")
        self.certificates = tempfile.mkdtemp(prefix="certificates-", dir=self.directory)
        make_certificates(self.certificates)
        self.batches = itertools.count(1)
        self.played = 0

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    async def play(self, scenarios):
        """For each scenario what was seen: {"haproxy": {...}, "ballast": {...}}."""
        self.played += len(scenarios)
        groups = {}
        for number, scenario in enumerate(scenarios):
            key = tuple(scenario.get("global", [])) or (number if scenario.get("alone") else ())
            groups.setdefault(key, []).append(number)
        seen = [None] * len(scenarios)
        for numbers in groups.values():
            batch = Batch(self, [scenarios[number] for number in numbers])
            for number, outcome in zip(numbers, await batch.play()):
                seen[number] = outcome
        return seen


class Batch:
    """Scenarios that share a start."""

    def __init__(self, programs, scenarios):
        directory = pathlib.Path(programs.directory) / str(next(programs.batches))
        self.directory, self.certificates = directory, programs.certificates
        self.sides = [
            Side(name, path, programs.addresses[name], directory) for name, path in programs.paths.items()
        ]
        addresses = list(programs.addresses.values())
        self.plots = [
            Plot(scenario, number, addresses, programs.certificates) for number, scenario in enumerate(scenarios)
        ]
        self.seen = [{side.name: {} for side in self.sides} for _ in scenarios]

    async def play(self):
        for side in self.sides:
            await side.open_logs(self.plots)
        try:
            live = await self.start()
            if live:
                await asyncio.gather(*[self.play_side(side, live) for side in self.sides])
        finally:
            for side in self.sides:
                await side.close()
            for plot in self.plots:
                plot.close()
            shutil.rmtree(self.directory, ignore_errors=True)
        return self.seen

    async def start(self):
        """Starts both programs with what both accept; who refuses a scenario is written down."""
        live = list(self.plots)
        while live:
            refusals = await asyncio.gather(*[self.refused(side, live) for side in self.sides])
            gone = {id(plot) for plots in refusals for plot in plots}
            if not gone:
                return live
            for side in self.sides:
                await side.stop()
            # What one of them refuses, the other is asked about alone: its first fault may hide others.
            for plot in [plot for plot in live if id(plot) in gone]:
                for side in self.sides:
                    refuses = await side.start([plot])
                    await side.stop()
                    seen = {"start": "refused", SAID: side.alerts()} if refuses else {"start": "started"}
                    self.seen[self.plots.index(plot)][side.name] = plain(seen, plot, side)
            live = [plot for plot in live if id(plot) not in gone]
        return []

    async def refused(self, side, plots):
        """The plots that keep the program from starting."""
        blamed = await side.start(plots)
        if len(blamed) == len(plots) > 1:
            await side.stop()
            half = len(plots) // 2
            blamed = []
            for part in (plots[:half], plots[half:]):
                blamed += await self.refused(side, part)
                await side.stop()
            # Those that start alone, but not together, are the harness's fault.
            return blamed or list(plots)
        return blamed

    async def play_side(self, side, live):
        servers = []
        results = await asyncio.gather(*[self.play_plot(side, plot, servers) for plot in live])
        await self.quiet(side)
        await asyncio.sleep(SETTLE_SECONDS)
        rows = await self.rows(side)
        for plot, (clients, plot_servers) in zip(live, results):
            seen = {"clients": clients}
            seen["servers"] = {name: server.shown() for name, server in plot_servers.items()}
            seen["log"] = list(side.logs[plot.tag].lines)
            seen["stat"] = rows.get(plot.tag, {})
            seen["ask"] = [await self.answer(side, plot, text) for text in plot.scenario.get("ask", [])]
            if plot.scenario.get("counted"):
                seen = {COUNTED: counted(plain(seen, plot, side), plot.scenario)}
            if side.has_ended:
                seen = {"program": f"ended with {side.process.returncode}: {panic_of(side.said())}"}
            self.seen[self.plots.index(plot)][side.name] = plain(seen, plot, side)
        for server in servers:
            await server.close()

    async def play_plot(self, side, plot, servers):
        events, mine, contexts = Events(), {}, Contexts(self.certificates)
        for name, plan in plot.scenario.get("servers", {}).items():
            mine[name] = Server(plan, events, contexts)
            servers.append(mine[name])
            await mine[name].listen(plot.server_ears[name][side.address])
        clients, broken = [], (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)
        plans = plot.scenario.get("clients", [])
        try:
            if plot.scenario.get("together"):
                playing = [self.client(side, plot, plan, events, contexts) for plan in plans]
                clients = await asyncio.wait_for(asyncio.gather(*playing), SCENARIO_SECONDS_MAX)
            else:
                for plan in plans:
                    played = self.client(side, plot, plan, events, contexts)
                    clients.append(await asyncio.wait_for(played, SCENARIO_SECONDS_MAX))
        except asyncio.TimeoutError:
            clients.append("took too long")
        except broken as fault:
            # A scenario that was made smaller may mean nothing any more.
            clients.append(f"broken: {fault!r}")
        return clients, mine

    async def client(self, side, plot, plan, events, contexts):
        if plan["speaks"] in ("cli", "prompt"):
            steps = [[step[0], *[plot.filled(text, side) for text in step[1:]]] for step in plan["steps"]]
            plan = {**plan, "steps": steps}
        said = await play_client(plan, side.address, plot.ports, events, side.sockets, contexts)
        if plan["speaks"] == "cli":
            return [[asked, steady(filtered(answer, plot))] for asked, answer in said]
        if plan["speaks"] == "prompt" and isinstance(said, dict):
            return said | {"received": [steady(filtered(part, plot)) for part in answers_of(said["received"])]}
        return said

    async def quiet(self, side):
        """Waits until no session is left."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + QUIET_SECONDS_MAX
        while loop.time() < deadline and not side.has_ended:
            rows = await self.rows(side)
            busy = [c for row in rows.values() for c in row.values() if c.get("scur") or c.get("qcur")]
            if not busy:
                return
            await asyncio.sleep(0.02)

    async def rows(self, side):
        """The rows of `show stat` by scenario: of each the counters that are not 0."""
        try:
            head, *lines = (await side.ask("show stat")).splitlines() or [""]
        except OSError:
            return {}
        names, rows = head.removeprefix("# ").split(","), {}
        for values in csv.reader(lines):
            row = dict(zip(names, values))
            tag = re.search(r"_x\d{3}x$", row.get("pxname", ""))
            if tag:
                key = f"{row['pxname'][: tag.start()]} {row['svname']}"
                kept = {name: row[name] for name in COLUMNS if row.get(name, "") not in ("", "0")}
                rows.setdefault(tag[0], {})[key] = kept
        return rows

    async def answer(self, side, plot, text):
        try:
            return [text, steady(filtered(await side.ask(plot.filled(text, side)), plot))]
        except OSError:
            return [text, "no answer"]


def filtered(answer, plot):
    """Lists that have rows of other scenarios lose these."""
    lines = answer.split("\n")
    return "\n".join(line for line in lines if plot.tag in line or not re.search(r"_x\d{3}x", line))


def answers_of(conversation):
    """The answers of a conversation, with the prompts between them."""
    conversation = re.sub(r"\[\d+:\d\d:\d\d:\d\d\]", "[UPTIME]", conversation)
    return re.split(r"(?<=\n\n)", conversation)


def steady(answer):
    """An answer without times, addresses in memory, and the order of a table's entries."""
    answer = re.sub(r"\bexp=\d+", "exp=N", answer)
    answer = re.sub(r"0x[0-9a-f]+", "0xN", answer)
    answer = re.sub(r"\b(_rate\(\d+\))=\d+", r"\1=N", answer)
    answer = re.sub(r"\[\d\d/\w{3}/\d{4}:[\d:.]+\]", "[TIME]", answer)
    # Events are counted for the whole process, which other scenarios share.
    answer = re.sub(r"\b(Total events captured on \[TIME\]) : \d+", r"\1 : N", answer)
    # What was meant by an unknown command is advice.
    answer = re.sub(r"(?s)(Unknown command|Usage: prompt|The following commands)([^\n,]*).*?(\n\n|\Z)", r"\1\2\3", answer)
    if answer.startswith("# table:"):
        head, *entries = answer.strip("\n").split("\n")
        return "\n".join([head, *sorted(entries)])
    if answer.startswith("1\n# be_id"):
        # The tenth column is the time since the last change.
        return re.sub(r"(?m)^((?:\S+ ){9})\d+", r"\1N", answer)
    return answer


def panic_of(said):
    found = re.search(r"panicked at[^\n]*\n?[^\n]*", said)
    return found[0] if found else said[-200:]


def plain(seen, plot, side):
    """All texts of an observation without what is of this run."""
    if isinstance(seen, str):
        return plot.plain(seen, side)
    if isinstance(seen, dict):
        return {plain(key, plot, side): plain(value, plot, side) for key, value in seen.items()}
    if isinstance(seen, (list, tuple)):
        return [plain(value, plot, side) for value in seen]
    return seen
