use serde_json::json;

use super::*;

/// What of `specs/a.md` and `specs/deep/b.md` was opened by a tool with this input, result and output.
fn check(tool: &str, input: &Value, (ok, output): (bool, &str)) -> String {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("specs/deep")).unwrap();
    for (path, text) in [
        ("a.md", "# A\n\nfirst\nsecond\n"),
        ("deep/b.md", "# B\n"),
        (".gitkeep", ""),
    ] {
        std::fs::write(root.path().join("specs").join(path), text).unwrap();
    }
    let input = input
        .to_string()
        .replace("ROOT", &root.path().display().to_string());
    let input: Value = serde_json::from_str(&input).unwrap();
    let mut opened = Opened::new(root.path(), Some(Path::new("specs")), "do A").unwrap();
    let id = || "1".to_owned();
    opened.hear(&Event::ToolCall {
        id: id(),
        name: tool.to_owned(),
        argument: None,
        input,
    });
    let output = output.to_owned();
    opened.hear(&Event::ToolResult {
        id: id(),
        ok,
        message: None,
        output,
    });
    let (seen, unseen) = opened.finish();
    assert_eq!(seen.len() + unseen.len(), 2);
    seen.join(" ")
}

#[test]
fn a_file_is_opened_by_a_tool_that_reads_it_or_prints_it() {
    let table = [
        (
            "Read",
            json!({ "file_path": "ROOT/specs/a.md" }),
            (true, ""),
            "specs/a.md",
        ),
        (
            "Read",
            json!({ "file_path": "ROOT/specs/a.md" }),
            (false, "no"),
            "",
        ),
        ("Read", json!({ "file_path": "ROOT/specs" }), (true, ""), ""),
        (
            "Write",
            json!({ "file_path": "specs/a.md" }),
            (true, ""),
            "",
        ),
        (
            "read_many_files",
            json!({ "include": ["./specs/a.md", "specs/deep/b.md"] }),
            (true, ""),
            "specs/a.md specs/deep/b.md",
        ),
        (
            "Bash",
            json!({ "command": "cd . && cat specs/a.md 2>/dev/null | head" }),
            (true, ""),
            "specs/a.md",
        ),
        (
            "command_execution",
            json!({ "command": "/bin/bash -lc 'sed -n 1,9p specs/deep/b.md'" }),
            (true, "# B\n"),
            "specs/deep/b.md",
        ),
        (
            "Bash",
            json!({ "command": "cat specs/a.md > /dev/null" }),
            (true, ""),
            "",
        ),
        (
            "Bash",
            json!({ "command": "echo cat specs/a.md; ls specs/a.md; wc -l specs/a.md" }),
            (true, "3 specs/a.md"),
            "",
        ),
        (
            "Bash",
            json!({ "command": "find specs -exec more {} +" }),
            (true, "# A\n\nfirst\nsecond\n# B"),
            "specs/a.md specs/deep/b.md",
        ),
        (
            "Grep",
            json!({ "pattern": "first" }),
            (true, "specs/a.md:3:first"),
            "",
        ),
        (
            "Grep",
            json!({ "pattern": "." }),
            (true, "specs/a.md:1:# A\nspecs/a.md:3:first\n"),
            "specs/a.md",
        ),
    ];
    for (tool, input, result, wanted) in table {
        assert_eq!(check(tool, &input, result), wanted, "{tool} {input}");
    }
}

#[test]
fn a_file_that_the_prompt_holds_whole_is_opened() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a.md"), "# A\nfirst\n").unwrap();
    let opened = |prompt| {
        Opened::new(root.path(), Some(Path::new("")), prompt)
            .unwrap()
            .finish()
            .0
    };
    assert_eq!(opened("From `a.md`:\n\n# A\nfirst\n\n# Specs"), ["a.md"]);
    assert!(opened("# A").is_empty());
}
