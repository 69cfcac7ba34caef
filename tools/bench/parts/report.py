"""The results as Markdown tables, and as the page and the chart of the docs."""

import re

from parts import chart

MARK = "<!-- {}: made by tools/bench/run --write-docs -->"


def section(name, found):
    """The table of one section, and what was measured."""
    if not found["rows"]:
        return "*not measured*\n"
    return f"{TABLES[name](found['rows'])}\nMeasured with commit `{found['commit']}`.\n"


def table(heads, rows):
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def number(value, unit="", digits=None):
    if value is None:
        return "–"
    digits = digits if digits is not None else (0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2)
    return f"{value:,.{digits}f}{unit}"


def small(found):
    rows = [[name, number(row["own"], " ms"), number(row["own_ratio"], " ×"), number(row["cpu"], " ms"), number(row["cpu_ratio"], " ×"),
             number(row["rss"], " MiB"), number(row.get("first"), " ms"), number(row["left"], digits=0)] for name, row in found.items()]
    return table(["", "wall − server", "ratio", "CPU", "ratio", "peak memory", "first request after", "files left"], rows)


def peers(found):
    rows = [[name, number(row["own"], " ms"), number(row["own_ratio"], " ×"), number(row["cpu"], " ms"), number(row["rss"], " MiB"),
             number(row.get("first"), " ms"), number(row["requests"], digits=0), number(row["left"], digits=0)] for name, row in found.items()]
    return table(["", "wall − server", "ratio", "CPU", "peak memory", "first request after", "requests", "files left"], rows)


def fsyncs(found):
    return table(["system call", "times"], [*found.items(), ["all", sum(found.values())]])


def profile(found):
    parts = list(found["least work"])
    rows = [[part, *(number(row[part], " ms", 2) for row in found.values())] for part in parts]
    return table(["", *found], [*rows, ["all", *(number(sum(row.values()), " ms", 2) for row in found.values())]])


def calls(found):
    return f"One more model call: {number(found['cpu'], ' ms')} of CPU, {number(found['own'], ' ms')} of wall − server time.\n"


def sizes(found):
    def row(files, costs):
        wall = [number(costs["status"]["wall"], " ms")]
        for name in ("check", "run"):
            wall += [number(costs[name]["wall"], " ms"), number(costs[f"{name}_ratio"], " ×"), number(costs[f"{name}_cpu_ratio"], " ×")]
        return [f"{int(files):,}", *wall, number(costs["run"]["rss"], " MiB")]
    heads = ["files", "`git status`", "`check`", "ratio", "CPU", "run", "ratio", "CPU", "peak memory"]
    return table(heads, [row(files, costs) for files, costs in found.items()])


def rollup(found):
    rows = [[f"{int(files):,}", number(row["rollup"], " ms"), number(row["cat"], " ms"), number(row["ratio"], " ×"), number(row["rss"], " MiB")]
            for files, row in found.items()]
    return table(["files", "`rollup`", "`git ls-files -z \\| xargs -0 cat`", "ratio", "peak memory"], rows)


def replies(found):
    rows = [[name, number(row["cpu"], " ms"), number(row["rss"], " MiB"), number(row["ratio"], " ×")] for name, row in found.items()]
    return table(["reply", "CPU", "peak memory", "memory / reply"], rows)


TABLES = {"small": small, "memory": small, "profile": profile, "fsyncs": fsyncs, "calls": calls, "sizes": sizes, "rollup": rollup, "replies": replies, "peers": peers}


def write(found, docs):
    """Puts the tables between their marks in `performance.md`, and draws the chart."""
    page = docs / "performance.md"
    text = page.read_text()
    for name, results in found.items():
        begin, end = re.escape(MARK.format(name)), re.escape(MARK.format(f"end of {name}"))
        if not re.search(f"{begin}.*?{end}", text, re.S):
            raise SystemExit(f"{page} has no place for {name}")
        fresh = f"{MARK.format(name)}\n\n{section(name, results)}\n{MARK.format(f'end of {name}')}"
        text = re.sub(f"{begin}.*?{end}", lambda _, fresh=fresh: fresh, text, flags=re.S)
    page.write_text(text)
    (docs / "performance.svg").write_text(chart.draw({name: results["rows"] for name, results in found.items()}))
