//! The protocol around the tools: versions, who we are, the list of tools.
//!
//! Up to 2025-11-25 a client begins with `initialize`. Since 2026-07-28 there is no handshake: `server/discover` tells who we
//! are, and every request names its version in `_meta`. Both are served, on the same connection.

use code_commit_rpc::{Answer, Params, RpcError};
use serde_json::{Value, json};

use crate::ToolCall;

/// With a handshake, the newest first.
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Without one.
const STATELESS: [&str; 1] = ["2026-07-28"];
/// Where a request without a handshake names its version.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";
const UNSUPPORTED_VERSION: i64 = -32022;

/// For the model that uses the tools.
const INSTRUCTIONS: &str = "\
Change files of this project with write_files alone: it writes all of a change or nothing, and each change can be undone. \
A refusal says why; mend the change and call again. Read the files to change first, or get them from context: every file \
that exists needs the base_sha256 of the content that you have seen. Call check after a change: it runs the build.";

/// What can be answered without the project; `None` for a call of a tool that exists.
pub(crate) fn answer(method: &str, params: &Params) -> Answer {
    if let Err(error) = check_version(params) {
        return Some(Err(error));
    }
    let result = match method {
        "initialize" => initialize(params),
        "ping" => json!({}),
        "server/discover" => discover(),
        "tools/list" => {
            json!({ "tools": crate::tools(), "ttlMs": 0, "cacheScope": "private" })
        }
        "tools/call" => match params.read::<ToolCall>() {
            Ok(_) => return None,
            Err(error) => return Some(Err(error)),
        },
        _ => return Some(Err(RpcError::no_method(method))),
    };
    Some(Ok(dressed(params, result)))
}

fn check_version(params: &Params) -> Result<(), RpcError> {
    let Some(version) = params.meta(VERSION) else {
        return Ok(());
    };
    if STATELESS.iter().any(|known| version == known) {
        return Ok(());
    }
    Err(RpcError {
        data: Some(json!({ "supported": STATELESS, "requested": version })),
        ..RpcError::new(UNSUPPORTED_VERSION, "unsupported protocol version")
    })
}

/// A version that we do not know is answered with the newest that we do; the client decides.
fn initialize(params: &Params) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let known = HANDSHAKE
        .iter()
        .find(|version| Some(**version) == wanted)
        .unwrap_or(&HANDSHAKE[0]);
    json!({
        "protocolVersion": known,
        "capabilities": { "tools": {} },
        "serverInfo": server(),
        "instructions": INSTRUCTIONS,
    })
}

fn discover() -> Value {
    json!({
        "supportedVersions": STATELESS,
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

fn server() -> Value {
    json!({ "name": "code-commit", "title": "code-commit", "version": env!("CARGO_PKG_VERSION") })
}

/// With what a request without a handshake expects of every result.
pub(crate) fn dressed(params: &Params, mut result: Value) -> Value {
    if let (Some(_), Some(result)) = (params.meta(VERSION), result.as_object_mut()) {
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("_meta".to_owned(), json!({ SERVER: server() }));
    }
    result
}
