"""Builds the programs, runs the fake service, and measures one program at a time."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# What every program gets: nothing of the caller's but PATH, a home of its own, no way to a proxy, a fake key.
KEY = "sk-bench-not-a-key"


def build(target):
    """Our program and the service as they are shipped, and the least-work program. Gives their paths."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    ours = ["cargo", "build", "--profile", "dist", "--quiet", "-p", "code-commit-cli", "-p", "code-commit-fixtures", "--bins", "--examples"]
    subprocess.run(ours, cwd=ROOT, env=env, check=True)
    least = {**env, "CARGO_TARGET_DIR": str(target / "least-work")}
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT / "tools/bench/least-work", env=least, check=True)
    return Programs(target)


def commit():
    """The commit that is checked out, shortened."""
    asked = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


class Programs:
    """Where the built programs are. Those that are compared are copied, as an installation does: a linker writes through a memory map,
    page by page, and a program that lies in memory like that costs more page faults until it is read anew from the disk."""

    def __init__(self, target):
        self.serve = target / "dist/examples/serve"
        self.stopwatch = target / "least-work/release/stopwatch"
        installed = target / "bench/installed"
        installed.mkdir(parents=True, exist_ok=True)
        built = [target / "dist/code-commit", target / "dist/code-commit-sandbox", target / "least-work/release/least-work"]
        self.ours, _, self.least = (Path(shutil.copy(program, installed / program.name)) for program in built)


class Server:
    """The fake service: one process on loopback that answers what its script says, as often as it is asked."""

    def __init__(self, programs, script):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(script, file)
            file.flush()
            self.process = subprocess.Popen([programs.serve, file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.origin = self.process.stdout.readline().strip()
        self.arrivals = []
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def _listen(self):
        for line in self.process.stdout:
            self.arrivals.append(int(line.split()[0]))

    def cpu_us(self):
        """What the service has worked. It never waits before it answers, so this is the time spent in it."""
        return time.clock_gettime_ns((~self.process.pid << 3) | 2) // 1000

    def settle(self, count):
        """Waits until so many arrivals are told, or for a moment."""
        end = time.monotonic() + 0.5
        while len(self.arrivals) < count and time.monotonic() < end:
            time.sleep(0.001)


def environment(home, **more):
    """The environment that the programs run in."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1",
            "NO_PROXY": "*", "OPENAI_API_KEY": KEY, **more}


def run(programs, argv, cwd, env, server=None, requests=0, stdout=subprocess.DEVNULL, expect=0):
    """Runs one program and gives its costs; times in ms, memory in MiB."""
    before = len(server.arrivals) if server else 0
    server_us = server.cpu_us() if server else 0
    with tempfile.NamedTemporaryFile() as out, tempfile.TemporaryFile("w+b") as errors:
        argv = [programs.stopwatch, *argv]
        subprocess.run(argv, cwd=cwd, env={**env, "STOPWATCH_OUT": out.name}, stdin=subprocess.DEVNULL, stdout=stdout, stderr=errors, check=True)
        found = json.loads(Path(out.name).read_text())
        if expect is not None and found["exit"] != expect:
            errors.seek(0)
            said = errors.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"{' '.join(map(str, argv[1:4]))} ended with {found['exit']}, not {expect}:\n{said}")
    costs = {"wall": found["wall_us"] / 1e3, "cpu": found["cpu_us"] / 1e3, "rss": found["rss_kib"] / 1024}
    if server:
        server.settle(before + requests)
        costs["server"] = (server.cpu_us() - server_us) / 1e3
        costs["own"] = costs["wall"] - costs["server"]
        arrivals = server.arrivals[before:]
        costs["requests"] = len(arrivals)
        costs["first"] = (arrivals[0] - found["began_ns"]) / 1e6 if arrivals else None
    return costs


def interleaved(contestants, times, optional=False):
    """Runs every contestant once a turn, `times` turns after one to warm up; gives the costs of each by name.

    An optional one that does not work on this machine is named loudly and left out.
    """
    working = {}
    for name, once in contestants.items():
        try:
            once()
            working[name] = once
        except (RuntimeError, OSError) as error:
            if not optional:
                raise
            print(f"SKIPPED: {name}, because {error}")
    costs = {name: [] for name in working}
    for turn in range(times):
        for name in list(working) if turn % 2 == 0 else reversed(working):
            costs[name].append(working[name]())
    return costs


def medians(costs):
    """The median of every figure."""
    names = {name for cost in costs for name, value in cost.items() if value is not None}
    return {name: statistics.median(cost[name] for cost in costs if cost.get(name) is not None) for name in sorted(names)}


def paired_ratio(costs, one, other, figure):
    """The median of the ratios within the turns: what the machine does meanwhile falls out."""
    return statistics.median(a[figure] / b[figure] for a, b in zip(costs[one], costs[other]))


def paired_difference(costs, one, other, figure):
    """The same for differences."""
    return statistics.median(a[figure] - b[figure] for a, b in zip(costs[one], costs[other]))
