"""The two-round task: a project whose build wants one word in one file, and a model that gets it right the second time."""

import os
import shutil
import subprocess
from pathlib import Path

from parts import measure

QUERY = "Make ./build.sh pass. Say hello in greeting.txt.\n"
START = "good day\n"
# Git reads a file again that may have changed since its index was written; most files of a project are older than that.
LONG_AGO = 1_700_000_000
FILES = {
    ".gitignore": "/agent-config\n",
    # Its complaint is put together, so that no prompt holds it before the build has failed.
    "build.sh": "#!/bin/sh\nread word < greeting.txt\n[ \"$word\" = hello ] && exit 0\n"
                "printf 'greeting.txt says %s: %s_%s\\n' \"$word\" HELLO WANTED\nexit 1\n",
    "greeting.txt": START,
    "agent-config/query.txt": QUERY,
}
COMPLAINT = "HELLO_WANTED"


def fenced(text):
    return f"^^^greeting.txt\n{text}\n^^^end\n"


def script(first, second, *more):
    """Answers `second` to whoever shows the complaint and `first` to everybody else; `more` rules go before."""
    return {"rules": [*more, [COMPLAINT, second], ["POST", first]]}


def two_rounds():
    return script({"text": fenced("goodbye")}, {"text": fenced("hello")})


class Project:
    """The task's project in a scratch folder, in a repository of `files` further files."""

    def __init__(self, folder, files=0):
        self.root, self.home = folder / "project", folder / "home"
        self.home.mkdir(parents=True)
        for name, text in FILES.items():
            self.write(name, text)
        (self.root / "build.sh").chmod(0o755)
        rollup = "".join(f"--- FILE {name} ---\n{FILES[name]}\n" for name in ("build.sh", "greeting.txt"))
        self.write("agent-config/codeRollup.txt", rollup)
        for number in range(files):
            line = f"This is line {{}} of file {number}.\n"
            self.write(f"src/{number // 1000:03}/{number // 100 % 10}/file-{number}.txt", "".join(map(line.format, range(12))))
        self.git("init", "--quiet", "--initial-branch=main")
        # Git would tidy up a large repository behind our back.
        self.git("config", "gc.auto", "0")
        self.git("config", "maintenance.auto", "false")
        self.git("add", "--all")
        self.git("-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "commit", "--quiet", "--message=start")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (LONG_AGO, LONG_AGO))

    def git(self, *args):
        subprocess.run(["git", *args], cwd=self.root, env=measure.environment(self.home), check=True, stdout=subprocess.DEVNULL)

    def reset(self):
        """As it was before a run; gives how many files the run has left, in the project, its `.git` apart, and the home."""
        left = sum(len(list(files(folder))) for folder in (self.root / "agent-config", self.home)) - 2
        left += sum(1 for entry in self.root.iterdir() if entry.name not in (".git", "src", "agent-config", *FILES))
        for entry in self.root.iterdir():
            if entry.name not in (".git", "src", "agent-config", *FILES):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.rmtree(self.root / "agent-config/logs", ignore_errors=True)
        shutil.rmtree(self.home)
        self.home.mkdir()
        self.write("greeting.txt", START)
        return left


def files(folder):
    return (path for path in Path(folder).rglob("*") if path.is_file())


def ours(programs, project, server, *flags, requests=2, expect=0):
    """A contestant: `code-commit` on the project."""
    return contestant(programs, project, server, [*command(programs, server), *flags], requests, expect)


def command(programs, server):
    return [programs.ours, "--model", "openai/bench", "--base-url", f"{server.origin}/v1", "--quiet"]


def least(programs, project, server):
    """A contestant: the least-work program."""
    address = server.origin.removeprefix("http://")
    return contestant(programs, project, server, [programs.least, project.root, address], 2, 0)


def contestant(programs, project, server, argv, requests, expect, **env):
    def once():
        costs = measure.run(programs, argv, project.root, measure.environment(project.home, **env), server, requests, expect=expect)
        if expect == 0 and (project.root / "greeting.txt").read_text().strip() != "hello":
            raise RuntimeError(f"{argv[0]} ended well, but greeting.txt does not say hello")
        costs["left"] = project.reset()
        return costs
    return once
