//! The client libraries that the makers of the protocol keep, in TypeScript and Python.

use std::process::Command;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Hang, Script, Step};

use crate::mcp::sdks::packages;
use crate::scenes::commit::{KEY, Scene};
use crate::scenes::files;
use crate::scenes::program::{Ran, tool};

const TYPESCRIPT: &str = r#"
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [command, ...args] = process.argv.slice(2);
const { session, initialize } = acp.methods.agent;
const seen = {};
const start = () => {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    const client = acp.client({ name: "test" }).onNotification(acp.methods.client.session.update, ({ params }) => {
        const kind = params.update.sessionUpdate;
        seen[kind] = (seen[kind] ?? 0) + 1;
    });
    const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
    return { child, agent: client.connect(stream).agent };
};
const cwd = process.cwd();
const hello = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} };
let { child, agent } = start();
const { protocolVersion } = await agent.request(initialize, hello);
const { sessionId, modes } = await agent.request(session.new, { cwd, mcpServers: [] });
console.log(protocolVersion, modes.availableModes.map((mode) => mode.id).join(" "));
const prompt = async (text) => {
    const { stopReason } = await agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    return stopReason;
};
console.log(await prompt("Greet."), seen.tool_call, seen.plan, seen.usage_update);
console.log(await prompt("/check"));
child.kill("SIGKILL");
({ child, agent } = start());
await agent.request(initialize, hello);
const { sessions } = await agent.request(session.list, { cwd });
console.log(sessions.length, sessions[0].sessionId === sessionId, sessions[0].title);
await agent.request(session.load, { sessionId, cwd, mcpServers: [] });
console.log(seen.user_message_chunk, await prompt("/undo"));
const waiting = prompt("Say more.");
setTimeout(() => agent.notify(session.cancel, { sessionId }), 1000);
console.log(await waiting);
child.stdin.end();
"#;

const PYTHON: &str = r#"
import asyncio, os, sys
import acp
from acp.schema import ClientCapabilities

class Client(acp.Client):
    def __init__(self):
        self.kinds = set()

    async def session_update(self, session_id, update, **rest):
        self.kinds.add(update.session_update)

    async def request_permission(self, options, session_id, tool_call, **rest):
        raise NotImplementedError

async def main():
    client = Client()
    async with acp.spawn_agent_process(client, sys.argv[1], *sys.argv[2:], env=os.environ) as (agent, process):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("Greet.")])
        print(answer.stop_reason, " ".join(sorted(client.kinds)))
        await agent.load_session(session_id=session.session_id, cwd=os.getcwd(), mcp_servers=[])
        print("user_message_chunk" in client.kinds)

asyncio.run(main())
"#;

fn client(scene: &Scene, program: &str, script: &str) -> Command {
    let agent = [env!("CARGO_BIN_EXE_code-commit"), "acp"];
    let args = [&[script][..], &agent, &scene.flags()].concat();
    let mut command = tool(program, scene.project.root(), scene.project.beside(), &args);
    command.env("GEMINI_API_KEY", KEY);
    command
}

#[test]
fn the_typescript_sdk_drives_a_session() {
    let Some(packages) = packages() else { return };
    let hang = Step::text("").hang(Hang::BeforeHead);
    let steps = [TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT].map(Step::text);
    let scene = Scene::new(Script::new(steps.into_iter().chain([hang])));
    // A module finds packages beside itself alone.
    let script = packages.join(format!("acp-client-{}.mjs", std::process::id()));
    files::write(&script, TYPESCRIPT);
    let ran = Ran::of(&mut client(&scene, "node", script.to_str().unwrap()));
    std::fs::remove_file(script).unwrap();
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!(ran.out, @r"
    1 commit implement check-only
    end_turn 5 4 1
    end_turn
    1 true Greet.
    1 end_turn
    cancelled
    ");
}

#[test]
fn the_python_sdk_drives_a_session() {
    let Some(packages) = packages() else { return };
    let scene = Scene::with_replies([TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT]);
    let script = scene.beside("client.py");
    files::write(&script, PYTHON);
    let mut command = client(&scene, "python3", script.to_str().unwrap());
    let ran = Ran::of(command.env("PYTHONPATH", packages.join("python"))).exits(0);
    insta::assert_snapshot!(ran.out, @r"
    end_turn agent_message_chunk agent_thought_chunk available_commands_update plan tool_call tool_call_update usage_update
    True
    ");
}
