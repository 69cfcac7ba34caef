//! The protocol's own client libraries: `CODE_COMMIT_TEST_PROTOCOLS` names a folder with the packages of npm in `node_modules` and
//! those of `PyPI` in `python`.

use std::path::PathBuf;
use std::process::Command;

use code_commit_fixtures::server::Script;

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{Ran, tool};

/// Where the packages are; none, and a loud line, where they are not.
pub fn packages() -> Option<PathBuf> {
    let found = std::env::var_os("CODE_COMMIT_TEST_PROTOCOLS");
    if found.is_none() {
        eprintln!(
            "SKIPPED: the protocols' own clients, because CODE_COMMIT_TEST_PROTOCOLS is not set"
        );
    }
    found.map(PathBuf::from)
}

const TYPESCRIPT: &str = r#"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const client = new Client({ name: "test", version: "1" });
const [command, ...args] = process.argv.slice(2);
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { tools } = await client.listTools();
console.log(tools.map((tool) => tool.name).join(" "));
const call = async (name, args, options) => await client.callTool({ name, arguments: args }, undefined, options);
let seen = 0;
const checked = await call("check", {}, { onprogress: () => { seen += 1; } });
console.log(checked.structuredContent.fitness, seen > 0);
const refused = await call("write_files", { writes: [{ path: ".git/hooks/x", content: "x" }] });
console.log(refused.isError, refused.content[0].text.includes("[dot-git]"));
const written = await call("write_files", { writes: [{ path: "new.txt", content: "x\n" }] });
console.log(written.isError, (await call("undo", { change: written.structuredContent.change })).isError);
await client.close();
"#;

const PYTHON: &str = r#"
import asyncio, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main(mode):
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with Client(stdio_client(server), mode=mode) as client:
        tools = await client.list_tools()
        print(mode, " ".join(tool.name for tool in tools.tools))
        checked = await client.call_tool("check", {})
        print(checked.structured_content["fitness"])
        refused = await client.call_tool("write_files", {"writes": [{"path": ".git/hooks/x", "content": "x"}]})
        print(refused.is_error, "[dot-git]" in refused.content[0].text)

for mode in ["legacy", "auto", "2026-07-28"]:
    asyncio.run(main(mode))
"#;

fn scene() -> Scene {
    Scene::with_files(
        &[("a.txt", "one\n"), ("build.sh", "#!/bin/sh\necho ok\n")],
        Script::new([]),
    )
}

fn client(scene: &Scene, program: &str, script: &str) -> Command {
    let server = [env!("CARGO_BIN_EXE_code-commit"), "mcp", "--sandbox", "off"];
    let args = [&[script][..], &server].concat();
    tool(program, scene.project.root(), scene.project.beside(), &args)
}

#[test]
fn the_typescript_sdk_lists_and_calls_the_tools() {
    let Some(packages) = packages() else { return };
    let scene = scene();
    // A module finds packages beside itself alone.
    let script = packages.join(format!("mcp-client-{}.mjs", std::process::id()));
    files::write(&script, TYPESCRIPT);
    let ran = Ran::of(&mut client(&scene, "node", script.to_str().unwrap()));
    std::fs::remove_file(script).unwrap();
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!(ran.out, @r"
    write_files check undo guard context
    green true
    true true
    false false
    ");
}

#[test]
fn the_python_sdk_speaks_with_and_without_a_handshake() {
    let Some(packages) = packages() else { return };
    let scene = scene();
    let script = scene.beside("client.py");
    files::write(&script, PYTHON);
    let mut command = client(&scene, "python3", script.to_str().unwrap());
    let ran = Ran::of(command.env("PYTHONPATH", packages.join("python"))).exits(0);
    insta::assert_snapshot!(ran.out, @r"
    legacy write_files check undo guard context
    green
    True True
    auto write_files check undo guard context
    green
    True True
    2026-07-28 write_files check undo guard context
    green
    True True
    ");
}
