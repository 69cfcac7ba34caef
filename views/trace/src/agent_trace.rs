//! Agent Trace 0.1.0: which lines of a revision a model wrote.

use std::collections::BTreeMap;

use code_commit_engine::Changed;
use code_commit_timeline::{Run, What};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::id::uuid;
use crate::lines::{Author, Files, Range};

/// The version of the specification.
const VERSION: &str = "0.1.0";
/// The longest `model_id` that its schema allows.
const LONGEST_MODEL: usize = 250;

/// One record for each commit that the run made; for a run without commits, one for the tree that it left, which is
/// that of `revision`, if this commit holds it. None if it wrote no line.
pub fn agent_trace(run: &Run, revision: Option<&str>) -> Vec<Value> {
    let mut files = Files::default();
    let mut records = Vec::new();
    let mut author = Author::Model(None);
    let mut has_commit = false;
    for step in &run.steps.all {
        match &step.what {
            What::Call(call) => author = Author::Model(model(run, call.served_model.as_deref())),
            What::Change(change) => learn(&mut files, &change.changes, &author, run),
            What::Command(command) => learn(&mut files, &command.changes, &Author::Command, run),
            What::Event(event) if event.is_restore => files.forget_all(),
            What::Event(event) => {
                let Some(commit) = &event.commit else {
                    continue;
                };
                has_commit = true;
                learn(&mut files, &event.changes, &author, run);
                let paths = event
                    .changes
                    .iter()
                    .map(|change| change.path.clone())
                    .collect();
                records.extend(record(run, Some(commit), step.to_ms, &mut files, paths));
            }
        }
    }
    if !has_commit {
        let paths = files.paths();
        records.extend(record(run, revision, run.steps.to_ms, &mut files, paths));
    }
    records
}

fn learn(files: &mut Files, changes: &[Changed], author: &Author, run: &Run) {
    for change in changes.iter().filter(|change| change.letter().is_some()) {
        let hashes = (
            change.before_sha256.as_deref(),
            change.after_sha256.as_deref(),
        );
        files.learn(&change.path, hashes, author, &run.contents);
    }
}

/// `provider/name`, as the specification wants it. Agents report the bare name.
fn model(run: &Run, served: Option<&str>) -> Option<String> {
    let asked = Some(run.model.as_str()).filter(|model| !model.is_empty());
    let named = match (served, asked.and_then(|model| model.split_once('/'))) {
        (Some(served), Some((provider, _))) if !served.contains('/') => {
            format!("{provider}/{served}")
        }
        (served, _) => served.or(asked)?.to_owned(),
    };
    Some(named.chars().take(LONGEST_MODEL).collect())
}

fn record(
    run: &Run,
    revision: Option<&str>,
    at_ms: i64,
    files: &mut Files,
    paths: Vec<String>,
) -> Option<Value> {
    let written = paths.into_iter().map(|path| {
        let ranges = files.take(&path, &run.contents);
        (path, ranges)
    });
    let files: Vec<Value> = written
        .filter(|(_, ranges)| !ranges.is_empty())
        .map(|(path, ranges)| file(&path, ranges))
        .collect();
    if files.is_empty() {
        return None;
    }
    let at = Timestamp::from_millisecond(at_ms).unwrap_or_default();
    let mut record = json!({
        "version": VERSION,
        "id": uuid(&[&run.name, revision.unwrap_or_default(), "agent-trace"]),
        "timestamp": at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        "tool": { "name": "code-commit", "version": run.version },
        "files": files,
        "metadata": { "dev.code-commit": about(run) },
    });
    if let (Some(revision), Some(record)) = (revision, record.as_object_mut()) {
        record.insert(
            "vcs".to_owned(),
            json!({ "type": "git", "revision": revision }),
        );
    }
    Some(record)
}

/// Where to find the prompt, the refusals and the builds.
fn about(run: &Run) -> Value {
    let mut about = Map::new();
    let known = [
        ("run", Some(&run.name)),
        ("loop", Some(&run.kind)),
        ("base_revision", run.head.as_ref()),
    ];
    for (key, value) in known {
        if let Some(value) = value {
            about.insert(key.to_owned(), json!(value));
        }
    }
    Value::Object(about)
}

/// Ranges are grouped by who wrote them (§6.3).
fn file(path: &str, ranges: Vec<Range>) -> Value {
    let mut by_author: BTreeMap<Author, Vec<Value>> = BTreeMap::new();
    for range in ranges {
        by_author.entry(range.author).or_default().push(json!({
            "start_line": range.start, "end_line": range.end, "content_hash": format!("sha256:{}", range.sha256),
        }));
    }
    let conversations: Vec<Value> = by_author
        .into_iter()
        .map(|(author, ranges)| json!({ "contributor": contributor(author), "ranges": ranges }))
        .collect();
    json!({ "path": path, "conversations": conversations })
}

fn contributor(author: Author) -> Value {
    match author {
        Author::Model(Some(model)) => json!({ "type": "ai", "model_id": model }),
        Author::Model(None) => json!({ "type": "ai" }),
        Author::Command => json!({ "type": "unknown" }),
    }
}
