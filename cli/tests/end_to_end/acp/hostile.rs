//! What no editor should send.

use serde_json::json;

use super::Editor;

/// Messages that are none, with the code of their answer.
const NO_MESSAGES: &str = r#"
-32700 {
-32700 nonsense
-32700 NaN
-32700 {"a":1}{"b":2}
-32600 []
-32600 1
-32600 null
-32600 {}
-32600 {"id":1,"method":"initialize"}
-32600 {"jsonrpc":"1.0","id":1,"method":"initialize"}
-32600 {"jsonrpc":"2.0","id":null,"method":"x"}
-32600 {"jsonrpc":"2.0","id":[],"method":"x"}
-32600 {"jsonrpc":"2.0","id":1}
-32600 {"jsonrpc":"2.0","id":1,"method":3}
-32602 {"jsonrpc":"2.0","id":1,"method":"x","params":[]}
-32602 {"jsonrpc":"2.0","id":1,"method":"x","params":"x"}
-32600 {"jsonrpc":"2.0","id":1,"result":1,"error":{}}
-32600 {"jsonrpc":"2.0","result":1}
"#;

/// Methods with wrong parameters.
const WRONG_CALLS: &str = r#"
no/method {}
session/update {}
fs/read_text_file {"path":"/etc/passwd"}
terminal/create {}
authenticate {}
authenticate {"methodId":"PATH"}
authenticate {"methodId":1}
session/new {}
session/new {"cwd":"."}
session/new {"cwd":"/no/such/folder"}
session/new {"cwd":"/etc/passwd"}
session/new {"cwd":"/\u0000"}
session/new {"cwd":1}
session/load {"cwd":"ROOT"}
session/load {"sessionId":"ID"}
session/load {"sessionId":"../..","cwd":"ROOT"}
session/load {"sessionId":"","cwd":"ROOT"}
session/list {"cwd":"/no/such/folder"}
session/set_mode {"sessionId":"ID"}
session/set_mode {"sessionId":"ID","modeId":{}}
session/set_mode {"sessionId":"x","modeId":"commit"}
session/set_config_option {"sessionId":"ID","configId":"model","value":"--network"}
session/set_config_option {"sessionId":"ID","configId":"sandbox","value":"off"}
session/set_config_option {"sessionId":"ID","configId":"model","value":true}
session/prompt {}
session/prompt {"sessionId":"x","prompt":[]}
session/prompt {"sessionId":"ID","prompt":[1]}
session/prompt {"sessionId":"ID","prompt":[{"type":"image","data":"","mimeType":"image/png"}]}
session/prompt {"sessionId":"ID","prompt":[{"type":"resource_link"}]}
session/prompt {"sessionId":"ID","prompt":[{"type":"resource","resource":{"text":"x"}}]}
session/prompt {"sessionId":"ID","prompt":[{"type":"text","text":" \n"}]}
"#;

#[test]
fn fifty_wrong_messages_are_answered_and_end_nothing() {
    let mut editor = Editor::new([]);
    let root = editor.scene.project.root().display().to_string();
    let mut lines = vec![
        (-32700, "[".repeat(100_000)),
        (-32700, "\0".to_owned()),
        (-32600, "x".repeat(9 << 20)),
    ];
    for line in NO_MESSAGES.trim().lines() {
        let (code, message) = line.split_once(' ').unwrap();
        lines.push((code.parse().unwrap(), message.to_owned()));
    }
    for (number, line) in WRONG_CALLS.trim().lines().enumerate() {
        let line = line.replace("ROOT", &root).replace("ID", &editor.id);
        let (method, params) = line.split_once(' ').unwrap();
        let call = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        lines.push((if number < 4 { -32601 } else { -32602 }, call));
    }
    assert!(lines.len() > 50);
    for (code, line) in lines {
        editor.client.send_bytes(line.as_bytes());
        let answer = loop {
            let message = editor.client.next();
            if message.get("method").is_none() {
                break message;
            }
        };
        let shown: String = line.chars().take(200).collect();
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    }
    // Notifications have no answer, and late answers no question.
    editor
        .client
        .notify("session/cancel", &json!({ "sessionId": "x" }));
    editor
        .client
        .send(&json!({ "jsonrpc": "2.0", "id": 99, "result": {} }));
    assert_eq!(editor.initialize(&json!({}))["protocolVersion"], 1);
    assert_eq!(editor.client.end(), Some(0));
}
