"""The sections of the bench. Each prints nothing and gives plain data."""

import subprocess
import tempfile
from pathlib import Path

from parts import measure, peers, profile, task

SIZES = (1, 100, 10_000, 100_000)
REPLY_MB = (1, 10, 100)

MB = 1_000_000
IN_MEMORY = Path("/dev/shm")


def scratch(base=None):
    return tempfile.TemporaryDirectory(prefix="code-commit-bench-", dir=base)


def memory(programs, pairs):
    """The small task where waiting for the disk costs nothing; None where there is no file system in memory."""
    if not IN_MEMORY.is_dir():
        print(f"SKIPPED: the small task in memory, because there is no {IN_MEMORY}")
        return None
    return small(programs, pairs, IN_MEMORY)


def small(programs, pairs, base=None):
    """The small task: ours beside the least-work program, and ours behind each wall."""
    with scratch(base) as folder, measure.Server(programs, task.two_rounds()) as server:
        project = task.Project(Path(folder))
        contestants = {"least work": task.least(programs, project, server)}
        for wall in ("off", "landlock", "namespaces"):
            contestants[f"code-commit --sandbox {wall}"] = task.ours(programs, project, server, "--sandbox", wall)
        costs = measure.interleaved(contestants, pairs, optional=True)
    rows = {name: measure.medians(costs[name]) for name in costs}
    for name in rows:
        for figure in ("own", "cpu", "rss"):
            rows[name][f"{figure}_ratio"] = measure.paired_ratio(costs, name, "least work", figure)
    return rows


def fsyncs(programs):
    """How often a two-round run waits for the disk, by system call; None where there is no strace."""
    calls = "fsync,fdatasync,syncfs,sync"
    with scratch() as folder, measure.Server(programs, task.two_rounds()) as server:
        project = task.Project(Path(folder))
        trace = Path(folder) / "trace"
        wrapped = ["strace", "-f", "-o", trace, "-e", f"trace={calls}", *task.command(programs, server), "--sandbox", "off"]
        try:
            subprocess.run(wrapped, cwd=project.root, env=measure.environment(project.home), stdout=subprocess.DEVNULL, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"SKIPPED: counting fsyncs, because {error}")
            return None
        lines = trace.read_text().splitlines()
        return {call: sum(f" {call}(" in line for line in lines) for call in calls.split(",")}


def profiles(programs, turns):
    """What the processor time of the small task goes into, without that of the build; None where `perf` does not tell."""
    base = IN_MEMORY if IN_MEMORY.is_dir() else None
    with scratch(base) as folder, measure.Server(programs, task.two_rounds()) as server:
        project, data = task.Project(Path(folder)), Path(folder) / "perf.data"
        least = [programs.least, project.root, server.origin.removeprefix("http://")]
        contestants = {"least work": least, "code-commit": [*task.command(programs, server), "--sandbox", "off"]}
        rows = {name: dict.fromkeys(profile.groups(), 0) for name in contestants}
        try:
            for _ in range(turns):
                for name, argv in contestants.items():
                    profile.record(argv, project.root, measure.environment(project.home), data)
                    project.reset()
                    for part, time in profile.milliseconds(data, children=("sh", "build.sh")).items():
                        rows[name][part] += time / turns
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"SKIPPED: what the time goes into, because {error}")
            return None
    return rows


def sizes(programs, turns):
    """`check` and the small task in repositories of several sizes, beside one `git status` of each; the first run of each is left out."""
    rows = {}
    for files in SIZES:
        with scratch() as folder, measure.Server(programs, task.two_rounds()) as server:
            project = task.Project(Path(folder), files)
            contestants = {
                "status": task.contestant(programs, project, server, ["git", "status"], 0, None),
                "check": task.contestant(programs, project, server, [programs.ours, "check", "--quiet"], 0, 1),
                "run": task.ours(programs, project, server),
            }
            costs = measure.interleaved(contestants, turns)
        rows[files] = {name: measure.medians(costs[name]) for name in costs}
        for name in ("check", "run"):
            rows[files][f"{name}_ratio"] = measure.paired_ratio(costs, name, "status", "wall")
            rows[files][f"{name}_cpu_ratio"] = measure.paired_ratio(costs, name, "status", "cpu")
    return rows


def rollup(programs, turns):
    """`code-commit rollup` beside what git and cat do."""
    rows = {}
    for files in SIZES[2:]:
        with scratch() as folder:
            project = task.Project(Path(folder), files)
            cat = ["sh", "-c", "git ls-files -z | xargs -0 cat > agent-config/cat.txt"]
            mine = [programs.ours, "rollup", "--quiet"]

            def once(argv):
                return lambda: measure.run(programs, argv, project.root, measure.environment(project.home))
            costs = measure.interleaved({"rollup": once(mine), "cat": once(cat)}, turns)
        rollup, cat = measure.medians(costs["rollup"]), measure.medians(costs["cat"])
        ratio = measure.paired_ratio(costs, "rollup", "cat", "wall")
        rows[files] = {"rollup": rollup["wall"], "cat": cat["wall"], "rss": rollup["rss"], "ratio": ratio}
    return rows


def replies(programs, turns):
    """One reply of so many MB that writes one file, streamed in pieces of 10 kB and whole."""
    rows = {}
    line = "0123456789abcdef" * 6 + "\n"
    for mb in REPLY_MB:
        text = "^^^big.txt\n" + line * (mb * MB // len(line)) + "^^^end\n" + task.fenced("hello")
        big = {"rules": [["POST", {"text": text, "pieces": mb * 100}]]}
        with scratch() as folder, measure.Server(programs, big) as server:
            project = task.Project(Path(folder))
            # The service's own work on such a reply would be most of the time, so only CPU and memory are told.
            contestants = {"streamed": task.ours(programs, project, server, "--sandbox", "off", requests=1),
                           "whole": task.ours(programs, project, server, "--sandbox", "off", "--stream=false", requests=1)}
            costs = measure.interleaved(contestants, turns)
        for name in contestants:
            found = measure.medians(costs[name])
            rows[f"{mb} MB {name}"] = {"cpu": found["cpu"], "rss": found["rss"], "ratio": found["rss"] * 1024 * 1024 / (mb * MB)}
    return rows


def calls(programs, turns):
    """What one more model call costs: a run with three useless replies before the good one, less a run without."""
    useless = "I would rather talk about the weather.\n"
    steps = [{"text": useless, "times": 3}, {"text": task.fenced("hello")}]
    with scratch() as folder:
        project = task.Project(Path(folder))

        def once(script, requests):
            def run():
                with measure.Server(programs, {"steps": script}) as server:
                    return task.ours(programs, project, server, "--sandbox", "off", requests=requests)()
            return run
        costs = measure.interleaved({"four": once(steps, 4), "one": once(steps[1:], 1)}, turns)
    return {figure: measure.paired_difference(costs, "four", "one", figure) / 3 for figure in ("cpu", "own")}


def side_by_side(programs, turns, folder):
    """The small task by the peers that can be installed, ours and the least-work program."""
    with scratch() as work:
        contestants, servers = {}, []
        try:
            for peer in peers.ALL:
                servers.append(measure.Server(programs, peer.script))
                project = task.Project(Path(work) / str(len(servers)))
                once = peer.contestant(programs, project, servers[-1], folder)
                contestants |= {peer.label(folder): once} if once else {}
            costs = measure.interleaved(contestants, turns, optional=True)
        finally:
            for server in servers:
                server.__exit__()
    rows = {name: measure.medians(costs[name]) for name in costs}
    for name in rows:
        rows[name]["own_ratio"] = measure.paired_ratio(costs, name, "least work", "own")
    return rows
