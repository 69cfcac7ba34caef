//! Approvals that nobody has earned, and those that somebody has: a table of reviewers and specs. Each agent is a script; what it did is what
//! it reports of its tools.

use serde_json::{Value, json};

use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene};

const APPROVED: &str = "say '<APPROVED>good</APPROVED>'";

/// A reviewer or a spec.
struct Kind {
    name: &'static str,
    /// What lies in the project besides `.specs/a.md`.
    files: &'static [(&'static str, &'static str)],
    focus: &'static str,
    /// The reviewing agents, one after another.
    turns: Vec<String>,
    exit: i32,
    /// What the run does not prove.
    doubt: Option<&'static str>,
}

fn kind(name: &'static str, exit: i32, turns: &[&str]) -> Kind {
    let turns = turns.iter().map(|turn| (*turn).to_owned()).collect();
    Kind {
        name,
        files: &[],
        focus: "Add X",
        turns,
        exit,
        doubt: None,
    }
}

/// The lines of a tool with its result; `ROOT` is the project.
fn tool(name: &str, input: &Value, ok: bool, output: &str) -> String {
    let call = json!({ "type": "tool_use", "id": "t", "name": name, "input": input });
    let result =
        json!({ "type": "tool_result", "tool_use_id": "t", "is_error": !ok, "content": output });
    let line = |kind: &str, block: Value| {
        json!({ "type": kind, "message": { "content": [block] } })
            .to_string()
            .replace('\'', "'\\''")
    };
    format!(
        "line '{}'; line '{}'",
        line("assistant", call),
        line("user", result)
    )
}

fn bash(command: &str, output: &str) -> String {
    tool("Bash", &json!({ "command": command }), true, output)
}

/// Uses this tool, approves, and does the same again when it is asked once more.
fn twice(name: &'static str, used: &str) -> Kind {
    let turn = format!("{used}; {APPROVED}");
    kind(name, 4, &[&turn, &turn])
}

fn once(name: &'static str, used: &str) -> Kind {
    kind(name, 0, &[&format!("{used}; {APPROVED}")])
}

fn read(path: &str) -> String {
    tool("Read", &json!({ "file_path": path }), true, "")
}

fn hostile_reviewers() -> Vec<Kind> {
    let crashed = format!("{}; exit 3", read(".specs/a.md"));
    let meddles = format!("{}; echo mine > src.txt; {APPROVED}", read(".specs/a.md"));
    let meddles_once = format!("{meddles}; rm -f $HOME/none");
    vec![
        twice("opens nothing", "true"),
        twice("reads the code only", &read("src.txt")),
        twice("lists the specs", &bash("ls .specs", "a.md")),
        twice(
            "counts their lines",
            &bash("wc -l .specs/a.md", "1 .specs/a.md"),
        ),
        twice(
            "says that it would read them",
            &bash("echo cat .specs/a.md", "cat .specs/a.md"),
        ),
        twice(
            "reads them into nothing",
            &bash("cat .specs/a.md > /dev/null", ""),
        ),
        twice(
            "may not read them",
            &tool(
                "Read",
                &json!({ "file_path": ".specs/a.md" }),
                false,
                "denied",
            ),
        ),
        twice(
            "reads one that is not there",
            &tool("Read", &json!({ "file_path": ".specs/b.md" }), false, "no"),
        ),
        twice("reads their folder", &read(".specs")),
        twice(
            "reports an edit of one",
            &tool("Edit", &json!({ "file_path": ".specs/a.md" }), true, "done"),
        ),
        twice(
            "says in prose that it has read them",
            "say 'I have read .specs/a.md:\n# A'",
        ),
        twice("reads another file of that name", &read("docs/a.md")),
        twice(
            "looks for what is not in them",
            &tool(
                "Grep",
                &json!({ "pattern": "zzz", "path": ".specs" }),
                true,
                "No matches found",
            ),
        ),
        twice(
            "asks git who wrote them",
            &bash("git log --oneline -- .specs/a.md", "abc first"),
        ),
        twice(
            "looks whether they are there",
            &bash("test -s .specs/a.md && echo yes", "yes"),
        ),
        twice(
            "compares their hash",
            &bash("sha256sum .specs/a.md", "0123abcd  .specs/a.md"),
        ),
        kind(
            "is another than who has read them",
            4,
            &[&crashed, APPROVED, APPROVED],
        ),
        kind("repairs what it approves", 4, &[&meddles, &meddles_once]),
        kind(
            "approves and crashes",
            4,
            &["say '<APPROVED>good</APPROVED>'; exit 3"; 2],
        ),
        kind(
            "approves and requests changes",
            1,
            &["say '<APPROVED>a</APPROVED> <REQUEST_CHANGES>b</REQUEST_CHANGES>'"],
        ),
    ]
}

fn honest_reviewers() -> Vec<Kind> {
    let silent = format!("{}; say 'I have looked at it.'", read(".specs/a.md"));
    let codex = "/bin/bash -lc \"sed -n '1,200p' .specs/a.md\"";
    let inner = json!({ "type": "assistant", "parent_tool_use_id": "p", "message": { "content": [
        { "type": "tool_use", "id": "i", "name": "Read", "input": { "file_path": ".specs/a.md" } }] } });
    let retried = format!(
        "{}; {}",
        tool("Read", &json!({ "file_path": "a.md" }), false, "no"),
        read(".specs/a.md")
    );
    vec![
        once("reads it", &read(".specs/a.md")),
        once("reads it by its whole path", &read("ROOT/.specs/a.md")),
        once("reads it by another path", &read("./.specs/./a.md")),
        once(
            "reads it in a shell",
            &bash("cat .specs/a.md 2>/dev/null", "# A"),
        ),
        once("reads all of them", &bash("cat .specs/*.md", "# A")),
        once(
            "reads it from its folder",
            &bash("cd .specs && nl a.md", "     1\t# A"),
        ),
        once(
            "reads a part, as Codex does",
            &tool(
                "command_execution",
                &json!({ "command": codex }),
                true,
                "# A\n",
            ),
        ),
        once(
            "searches it whole",
            &tool(
                "Grep",
                &json!({ "pattern": "." }),
                true,
                ".specs/a.md:1:# A",
            ),
        ),
        once(
            "reads how it came about",
            &bash("git show HEAD", "+++ b/.specs/a.md\n@@ -0,0 +1 @@\n+# A"),
        ),
        once("has another agent read it", &format!("line '{inner}'")),
        once("tries twice", &retried),
        kind(
            "reads it when it is asked once more",
            0,
            &[APPROVED, APPROVE],
        ),
        kind(
            "reads it, forgets to answer and approves",
            0,
            &[&silent, APPROVED],
        ),
        Kind {
            focus: "@.specs/a.md",
            ..kind("is shown it by the prompt", 0, &[APPROVED])
        },
        Kind {
            files: &[(".specs/b.md", "# B\n"), (".specs/.notes", "mine\n")],
            doubt: Some("the reviewing agent did not open .specs/b.md"),
            ..kind("reads one of two", 0, &[APPROVE])
        },
    ]
}

/// What is wrong with how the run ended; empty if nothing is.
fn faults(kind: &Kind) -> Vec<String> {
    let turns: Vec<&str> = [PLAN, DONE]
        .into_iter()
        .chain(kind.turns.iter().map(String::as_str))
        .collect();
    let scene = Scene::new(&turns);
    for number in 1..=turns.len() {
        let turn = scene.home().join(format!("bin/turn-{number}"));
        let script = std::fs::read_to_string(&turn).unwrap();
        std::fs::write(
            &turn,
            script.replace("ROOT", &scene.root().display().to_string()),
        )
        .unwrap();
    }
    scene.configure(&json!({ "maxIterations": 1 }));
    scene.write("docs/a.md", "# A\n");
    kind.files
        .iter()
        .for_each(|(path, text)| scene.write(path, text));
    let ran = scene.spec(&["run", "--focus", kind.focus]);
    let mut faults = Vec::new();
    if ran.code != Some(kind.exit) {
        faults.push(format!(
            "{}: exit code {:?}, not {}\n{ran}",
            kind.name, ran.code, kind.exit
        ));
    }
    let calls = u32::try_from(turns.len()).unwrap();
    if scene.calls() != calls {
        faults.push(format!(
            "{}: {} calls, not {calls}\n{ran}",
            kind.name,
            scene.calls()
        ));
    }
    let doubts: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| line.contains("did not open"))
        .collect();
    let expected = kind.doubt.map(|doubt| format!("warning: {doubt}"));
    if doubts != Vec::from_iter(expected.as_deref()) {
        faults.push(format!(
            "{}: {doubts:?} instead of {expected:?}\n{ran}",
            kind.name
        ));
    }
    faults
}

#[test]
fn no_reviewer_approves_by_specs_that_it_has_not_opened_and_each_that_has_does() {
    let (hostile, honest) = (hostile_reviewers(), honest_reviewers());
    assert_eq!((hostile.len(), honest.len()), (20, 15));
    assert!(hostile.iter().all(|kind| kind.exit != 0) && honest.iter().all(|kind| kind.exit == 0));
    let faults: Vec<String> = hostile.iter().chain(&honest).flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
