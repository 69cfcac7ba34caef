//! A project, an agent that does what a script says, and the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use code_commit_fixtures::project::Project;
use regex::Regex;
use serde_json::{Value, json};

use crate::scenes::files;
use crate::scenes::program::{Ran, program, search_path};

/// Each turn of the agent is one shell script: `$WIP` is the stem of the session's files, `say TEXT` a message, `tool NAME ARG` a tool call.
/// The n-th call of the agent runs the n-th script; one too many fails.
const AGENT: &str = r#"#!/bin/sh
count=$(( $(cat "$HOME/count" 2>/dev/null || echo 0) + 1 ))
echo $count > "$HOME/count"
printf '%s\n' "$@" > "$HOME/args-$count"
while [ $# -gt 0 ]; do
  case "$1" in
    -p) prompt=$2;;
    --session-id|--resume) session=$2;;
  esac
  shift
done
printf '%s' "$prompt" > "$HOME/prompt-$count"
json() { printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk '{ printf "%s%s", sep, $0; sep = "\\n" }'; }
line() { printf '%s\n' "$1"; }
say() { last=$1; line "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"$(json "$1")\"}]}}"; }
tool() { line "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"t$count\",\"name\":\"$1\",\"input\":{\"file_path\":\"$2\"}}]}}"; }
finish() { line "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$(json "$last")\",\"session_id\":\"$session\"}"; exit 0; }
WIP=$(printf '%s' "$prompt" | grep -o '\.cuggino/wip/[0-9a-f-]*' | head -n 1)
# A session that goes on knows it.
[ -z "$WIP" ] || echo "$WIP" > "$HOME/wip-$session"
WIP=$(cat "$HOME/wip-$session")
last=
line "{\"type\":\"system\",\"subtype\":\"init\",\"model\":\"scripted\",\"session_id\":\"$session\"}"
. "$HOME/bin/turn-$count"
finish
"#;

/// A plan, as a turn's script.
pub const PLAN: &str =
    "printf '# Plan\\n- [ ] one\\n' > $WIP.plan.md; say '<PLAN_COMPLETE>ready</PLAN_COMPLETE>'";
/// An approval.
pub const APPROVE: &str = "tool Read .specs/a.md; say '<APPROVED>good</APPROVED>'";
/// A task that changes a file and is the last one.
pub const DONE: &str = "echo new > src.txt; say '<DONE>the last task</DONE>'";

/// A project with an agent.
pub struct Scene {
    pub project: Project,
}

impl Scene {
    /// A git project with one commit whose agent plays these turns.
    pub fn new(turns: &[&str]) -> Self {
        let scene = Self::without_commits(turns);
        scene.write("src.txt", "old\n");
        scene.write(".specs/a.md", "# A\n");
        scene.git(&["add", "-A"]);
        scene.git(&["commit", "-q", "-m", "first"]);
        scene
    }

    /// A git project without a commit.
    pub fn without_commits(turns: &[&str]) -> Self {
        let scene = Self {
            project: Project::empty().unwrap(),
        };
        files::write_program(&scene.home().join("bin/claude"), AGENT);
        for (number, turn) in (1..).zip(turns) {
            files::write(&scene.home().join(format!("bin/turn-{number}")), turn);
        }
        scene
    }

    pub fn root(&self) -> PathBuf {
        self.project.root().to_owned()
    }

    pub fn home(&self) -> PathBuf {
        self.project.beside().canonicalize().unwrap().join("home")
    }

    pub fn write(&self, file: &str, text: &str) {
        files::write(&self.root().join(file), text);
    }

    /// Empty where there is no such file.
    pub fn read(&self, file: &str) -> String {
        self.project.read(file).unwrap_or_default()
    }

    pub fn configure(&self, settings: &Value) {
        self.write(".cuggino.json", &settings.to_string());
    }

    /// The prompt of the n-th call of the agent.
    pub fn prompt(&self, number: u32) -> String {
        fs::read_to_string(self.home().join(format!("prompt-{number}"))).unwrap_or_default()
    }

    /// Its arguments, one a line.
    pub fn arguments(&self, number: u32) -> String {
        fs::read_to_string(self.home().join(format!("args-{number}"))).unwrap_or_default()
    }

    /// How often the agent was called.
    pub fn calls(&self) -> u32 {
        fs::read_to_string(self.home().join("count")).map_or(0, |text| text.trim().parse().unwrap())
    }

    /// The files of a folder of the store.
    pub fn stored(&self, folder: &str) -> Vec<String> {
        files::names(self.root().join(".cuggino").join(folder))
    }

    pub fn git(&self, args: &[&str]) -> String {
        self.project.git(args).unwrap_or_default()
    }

    pub fn command(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let path = search_path().into_string().unwrap();
        let path = format!("{}:{path}", self.home().join("bin").display());
        let mut all = vec![("PATH", path.as_str())];
        all.extend(environment);
        program(&self.root(), &self.home(), args, &all)
    }

    /// The program, without a sandbox unless one is asked for: behind it the agent cannot count its turns.
    pub fn spec(&self, args: &[&str]) -> Ran {
        let mut all = vec!["spec"];
        all.extend(args);
        let runs = args
            .first()
            .is_some_and(|action| ["run", "audit", "watch"].contains(action));
        if runs && !args.contains(&"--sandbox") {
            all.extend(["--sandbox", "off"]);
        }
        self.ran(&mut self.command(&all, &[]))
    }

    pub fn run(&self) -> Ran {
        self.spec(&["run", "--focus", "Add X"])
    }

    /// `spec run --json` in such a sandbox, ready to be started.
    pub fn json_run(&self, sandbox: &str, more: &[&str]) -> Command {
        let base = ["spec", "run", "--focus", "Add X", "--json"];
        let args = [&base[..], &["--sandbox", sandbox], more].concat();
        self.command(&args, &[])
    }

    /// The events of a run, and its exit code.
    pub fn events(&self) -> (Option<i32>, Vec<Value>) {
        let ran = Ran::of(&mut self.json_run("off", &[]));
        let events = ran.objects();
        crate::spec::schema::hold(&events);
        (ran.code, events)
    }

    fn ran(&self, command: &mut Command) -> Ran {
        Ran::of(command).map(|text| self.steady(text))
    }

    /// Paths, hashes and names by time replaced.
    fn steady(&self, text: &str) -> String {
        let text = text.replace(&self.root().display().to_string(), "[ROOT]");
        let uuid = r"[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}";
        let steady = [
            (r"(?m)(\[Commit\] )[[:xdigit:]]{7}", "$1[HASH]"),
            (r"(?m)^  \d+ iterations? · .*", "  [USED]"),
            (uuid, "[UUID]"),
        ];
        steady.iter().fold(text, |text, (from, to)| {
            Regex::new(from)
                .unwrap()
                .replace_all(&text, *to)
                .into_owned()
        })
    }
}

/// The names of events, but those of the agents.
pub fn names(events: &[Value]) -> Vec<&str> {
    let agents = [
        "SystemMessage",
        "AgentMessage",
        "ToolCall",
        "ToolResult",
        "PingEvent",
        "summary",
    ];
    let names = events.iter().map(|event| event["event"].as_str().unwrap());
    names.filter(|name| !agents.contains(name)).collect()
}

/// The first event of that name.
pub fn event<'e>(events: &'e [Value], name: &str) -> &'e Value {
    events
        .iter()
        .find(|event| event["event"] == name)
        .unwrap_or_else(|| panic!("no {name} in {events:#?}"))
}

/// Settings with both commands and commits.
pub fn all_settings() -> Value {
    json!({ "setupCommand": "echo set up", "checkCommand": "echo checked; exit 1", "commit": true })
}

/// Whether a file's name begins with a `UUIDv7` of the last hour: 48 bits of milliseconds, version 7, variant 2.
#[track_caller]
pub fn assert_is_uuid_v7(name: &str) {
    let id = name.split('.').next().unwrap();
    let parts: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(
        (parts.as_slice(), &id[14..15]),
        (&[8, 4, 4, 4, 12][..], "7"),
        "{name}"
    );
    assert!("89ab".contains(&id[19..20]), "{name}");
    let made_ms = u128::from_str_radix(&id[..13].replace('-', ""), 16).unwrap();
    let now_ms = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    assert!(
        made_ms <= now_ms && now_ms - made_ms < 3_600_000,
        "{name} at {now_ms}"
    );
}

/// Whether a path is there.
pub fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// A dead process may wait for the first process of the machine to take note of it.
pub fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
