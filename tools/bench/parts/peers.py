"""The peers: how each is installed from its registry, started on the task, and answered in its own way of editing."""

import json
import subprocess
import sys

from parts import task

# Only loopback is reached; whatever a peer wants from elsewhere meets a closed port.
NOWHERE = "http://127.0.0.1:9"
LOOPBACK_ONLY = {name: NOWHERE for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")} | {
    "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


class Peer:
    """A program that does the task; the ways in which peers differ are the methods."""

    package, requests, expect = None, 2, 0
    env = {}

    def program(self, folder):
        """The installed program."""

    def install(self, folder):
        """Puts it into `folder`; raises what keeps it from that."""

    def argv(self, origin):
        """What it is called with."""

    def label(self, folder):
        return f"{self.name} {self.installed(folder)}".strip()

    def installed(self, _folder):
        """Its version."""
        return ""

    def contestant(self, programs, project, server, folder):
        """A contestant, or none where it cannot be installed; says so."""
        try:
            if not self.program(folder).exists():
                self.install(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"SKIPPED: {self.name}, because it could not be installed: {error}")
            return None
        env = {name: value.replace("HOME", str(project.home)) for name, value in {**LOOPBACK_ONLY, **self.env}.items()}
        argv = [self.program(folder), *self.argv(server.origin)]
        return task.contestant(programs, project, server, argv, self.requests, self.expect, **env)


class FromPip(Peer):
    """In a virtual environment of its own."""

    def program(self, folder):
        return folder / self.package / "bin" / self.command

    def install(self, folder):
        subprocess.run([sys.executable, "-m", "venv", folder / self.package], check=True)
        subprocess.run([folder / self.package / "bin/pip", "install", "--quiet", self.package], check=True)

    def installed(self, folder):
        shown = subprocess.run([folder / self.package / "bin/pip", "show", self.package], capture_output=True, text=True).stdout
        return next((line.split()[1] for line in shown.splitlines() if line.startswith("Version:")), "")


class Aider(FromPip):
    name, package, command = "aider", "aider-chat", "aider"
    script = task.script({"text": "greeting.txt\n```\ngoodbye\n```\n"}, {"text": "greeting.txt\n```\nhello\n```\n"})
    env = {"AIDER_ANALYTICS_DISABLE": "true", "AIDER_CHECK_UPDATE": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def argv(self, origin):
        return ["--model", "openai/gpt-4o", "--openai-api-base", f"{origin}/v1", "--edit-format", "whole", "--yes-always",
                "--no-auto-commits", "--no-gitignore", "--no-show-model-warnings", "--no-show-release-notes", "--no-detect-urls",
                "--no-pretty", "--no-suggest-shell-commands", "--map-tokens", "0", "--auto-test", "--test-cmd", "./build.sh",
                "--message", task.QUERY, "greeting.txt"]


class MiniSweAgent(FromPip):
    name, package, command = "mini-swe-agent", "mini-swe-agent", "mini"
    block = "THOUGHT: go on.\n\n```mswea_bash_command\n{}\n```\n"
    script = task.script({"text": block.format("echo goodbye > greeting.txt; ./build.sh")},
                         {"text": block.format("echo hello > greeting.txt; ./build.sh && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")})
    env = {"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": "HOME/mini", "MSWEA_COST_TRACKING": "ignore_errors",
           "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def argv(self, origin):
        return ["-c", "mini_textbased.yaml", "-c", f"model.model_kwargs.api_base={origin}/v1", "--model", "openai/gpt-4o",
                "--model-class", "litellm_textbased", "--yolo", "--exit-immediately", "--task", task.QUERY]


def events(*items):
    """An answer of the Responses API as the stream that Codex reads."""
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
    told = [{"type": "response.created", "response": {"id": "resp_1"}},
            *({"type": "response.output_item.done", "item": item} for item in items),
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in told)
    return {"body": body, "content_type": "text/event-stream"}


def command(line):
    return events({"type": "function_call", "call_id": "call_1", "name": "exec_command", "arguments": json.dumps({"cmd": line})})


class Codex(Peer):
    """Ends only when the model calls no tool any more, so it asks a third time."""

    name, package, requests = "codex", "@openai/codex", 3
    script = task.script(
        command("echo goodbye > greeting.txt; ./build.sh"), command("echo hello > greeting.txt; ./build.sh && printf 'ALL_%s' GREEN"),
        ["ALL_GREEN", events({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]})])
    env = {"CODEX_HOME": "HOME"}

    def program(self, folder):
        return folder / "codex/node_modules/.bin/codex"

    def install(self, folder):
        (folder / "codex").mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder / "codex", self.package], check=True, stdout=subprocess.DEVNULL)

    def installed(self, folder):
        manifest = folder / "codex/node_modules/@openai/codex/package.json"
        return json.loads(manifest.read_text())["version"]

    def argv(self, origin):
        provider = f'{{name="bench",base_url="{origin}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
        settings = ["model_provider=bench", f"model_providers.bench={provider}", "analytics.enabled=false",
                    "check_for_update_on_startup=false"]
        flags = [flag for setting in settings for flag in ("-c", setting)]
        return ["exec", "--sandbox", "danger-full-access", "--model", "gpt-5.1", *flags, task.QUERY]


class Ours(Peer):
    name = "code-commit"
    script = task.two_rounds()

    def __init__(self, wall):
        self.wall = wall

    def contestant(self, programs, project, server, _folder):
        return task.ours(programs, project, server, "--sandbox", self.wall)

    def label(self, _folder):
        return f"code-commit --sandbox {self.wall}"


class LeastWork(Peer):
    name = "least work"
    script = task.two_rounds()

    def contestant(self, programs, project, server, _folder):
        return task.least(programs, project, server)


ALL = [LeastWork(), Ours("off"), Ours("namespaces"), Codex(), MiniSweAgent(), Aider()]
