//! The tools: what a client is told of them, and what they do.

use std::collections::HashMap;
use std::ffi::OsString;

use code_commit_apply::Applied;
use code_commit_engine::Problem;
use code_commit_guard::Verdict;
use code_commit_logging::sha256_hex;
use code_commit_perform::{InPrompt, Taken};
use code_commit_prompt::rollup::files;
use code_commit_report::phrases;
use code_commit_runs::apply::{self, Writer};
use code_commit_runs::rollup::{self, Chosen, RollUp, Sources};
use code_commit_runs::{Failure, Host, Project, changes, check, config, judge, place, undo};
use code_commit_settings::{Keys, Options};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Done, Said};

/// The arguments of a tool, as the client sent them.
pub(crate) type Arguments = Map<String, Value>;

/// Tokens of `context`, unless the client says another number, and at most.
const BUDGET: u64 = 20_000;
const MOST_TOKENS: u64 = 200_000;
/// Paths that are judged at once, at most.
const MOST_PATHS: usize = 1_000;

/// A tool.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tool {
    WriteFiles,
    Check,
    Undo,
    Guard,
    Context,
}

impl Tool {
    pub(crate) const ALL: [Self; 5] = [
        Self::WriteFiles,
        Self::Check,
        Self::Undo,
        Self::Guard,
        Self::Context,
    ];

    /// As `tools/list` has it.
    pub(crate) fn described(self) -> Value {
        let (title, description) = self.words();
        let (required, properties) = self.parameters();
        json!({
            "name": self,
            "title": title,
            "description": description,
            "inputSchema": {
                "type": "object", "properties": properties,
                "required": required, "additionalProperties": false,
            },
            "annotations": {
                "readOnlyHint": matches!(self, Self::Guard | Self::Context),
                "destructiveHint": matches!(self, Self::WriteFiles | Self::Undo),
                "idempotentHint": !matches!(self, Self::WriteFiles | Self::Undo),
                "openWorldHint": false,
            },
        })
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::WriteFiles => (
                "Write files",
                "Writes files of the project: all of them, or none if one is refused. Give each file its whole new content, or \
                 edits whose search lines occur exactly once. base_sha256 is the SHA-256, in hex, of the content that you have \
                 read; leave it out for a file that does not exist. The result names the change; undo takes it back.",
            ),
            Self::Check => (
                "Run the build",
                "Runs the project's build in a sandbox, without network, and says whether it is green (passes), red (fails) or \
                 unfit (cannot be started), with its output. What the build changes in the project is put back.",
            ),
            Self::Undo => (
                "Undo a change",
                "Restores the files that a change of write_files has written. Refused if one of them was changed since.",
            ),
            Self::Guard => (
                "May these paths be written?",
                "Says which paths write_files would accept, why not the others, and the SHA-256 of files that exist.",
            ),
            Self::Context => (
                "Files that matter",
                "Shows the files that matter most for a query, whole, as outlines or as excerpts, within a budget of tokens, with the SHA-256 \
                 of those shown whole, and lists the others.",
            ),
        }
    }

    /// The required ones, and all.
    fn parameters(self) -> (&'static [&'static str], Value) {
        let text = json!({ "type": "string" });
        let texts = json!({ "type": "array", "items": text });
        match self {
            Self::WriteFiles => {
                let edit = json!({
                    "type": "object", "required": ["search", "replace"], "additionalProperties": false,
                    "properties": { "search": text, "replace": text },
                });
                let write = json!({
                    "type": "object", "required": ["path"], "additionalProperties": false,
                    "properties": {
                        "path": text, "base_sha256": text, "content": text,
                        "edits": { "type": "array", "items": edit },
                    },
                });
                (
                    &["writes"],
                    json!({ "writes": { "type": "array", "items": write } }),
                )
            }
            Self::Check => (&[], json!({})),
            Self::Undo => (&["change"], json!({ "change": text, "files": texts })),
            Self::Guard => (&["paths"], json!({ "paths": texts })),
            Self::Context => {
                let tokens = json!({ "type": "integer", "minimum": 1, "maximum": MOST_TOKENS });
                (
                    &["query"],
                    json!({ "query": text, "budget_tokens": tokens }),
                )
            }
        }
    }

    pub(crate) fn call(
        self,
        arguments: Arguments,
        layer: &Options,
        host: Host<'_>,
        said: &Said,
    ) -> Result<Done, Failure> {
        match self {
            Self::WriteFiles => write_files(arguments, host),
            Self::Check => run_check(layer, host, said),
            Self::Undo => with(arguments, |wanted| take_back(&wanted, host)),
            Self::Guard => with(arguments, |wanted| guard(&wanted, host)),
            Self::Context => with(arguments, |wanted| context(&wanted, host)),
        }
    }
}

/// A model can mend arguments that cannot be read.
fn with<T: for<'de> Deserialize<'de>>(
    arguments: Arguments,
    call: impl FnOnce(T) -> Result<Done, Failure>,
) -> Result<Done, Failure> {
    match serde_json::from_value(Value::Object(arguments)) {
        Ok(wanted) => call(wanted),
        Err(error) => Ok(Done::bad(format!("wrong arguments: {error}"), Value::Null)),
    }
}

/// The files go through the strict parser of proposals, which names all that is wrong with them.
fn write_files(mut arguments: Arguments, host: Host<'_>) -> Result<Done, Failure> {
    arguments.insert("summary".to_owned(), json!(""));
    let writes = arguments.get_mut("writes").and_then(Value::as_array_mut);
    let mut named = Vec::new();
    for write in writes
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        write
            .entry("base_sha256")
            .or_insert_with(|| sha256_hex(b"").into());
        named.extend(write.get("path").and_then(Value::as_str).map(str::to_owned));
    }
    let writer = Writer::open(host)?;
    let answer = writer.reply(&Value::Object(arguments).to_string());
    // The hashes prove that the model has seen what it changes.
    let shown = InPrompt {
        whole: &named,
        in_part: &[],
    };
    let record = writer.record()?;
    let taken = writer
        .rules
        .take_in_proposal(&answer, shown, &apply::backup(&record))
        .map_err(|error| apply::failed(error, &record))?;
    Ok(match taken {
        Taken::Written {
            applied, warnings, ..
        } => written(
            apply::settle(&record, Some(&applied)).as_deref(),
            &applied,
            &warnings,
        ),
        Taken::Refused { problems, .. } => {
            apply::settle(&record, None);
            refused(&problems)
        }
    })
}

fn written(change: Option<&str>, applied: &Applied, warnings: &[Problem]) -> Done {
    let mut lines: Vec<String> = applied.changes.iter().map(phrases::change).collect();
    lines.push(match change {
        Some(change) => format!("change: {change}"),
        None => "every file had this content already".to_owned(),
    });
    let left = applied.warnings.iter().map(ToString::to_string);
    let warned = warnings.iter().map(|warning| warning.message.clone());
    let warnings: Vec<String> = warned.chain(left).collect();
    lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
    Done::good(
        lines.join("\n"),
        json!({ "change": change, "changed": applied.changes, "warnings": warnings }),
    )
}

fn refused(problems: &[Problem]) -> Done {
    let reason = |problem: &Problem| format!("- {} [{}]", problem.message, problem.code);
    let reasons: Vec<String> = problems.iter().map(reason).collect();
    Done::bad(
        format!("nothing was written:\n{}", reasons.join("\n")),
        json!({ "refused": problems }),
    )
}

fn run_check(layer: &Options, host: Host<'_>, said: &Said) -> Result<Done, Failure> {
    check::run(layer, check::Of::Build, host)?;
    let verdict = std::mem::take(&mut said.kept().result);
    let text = |key: &str| verdict.get(key).and_then(Value::as_str).unwrap_or_default();
    let told = format!("{}\n{}", text("fitness"), text("output"));
    Ok(Done::good(told, verdict))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TakeBack {
    change: String,
    #[serde(default)]
    files: Vec<String>,
}

/// Only a change of `write_files`, by its whole name: the runs of a person are not the agent's to undo.
fn take_back(wanted: &TakeBack, host: Host<'_>) -> Result<Done, Failure> {
    let project = Project::here(host)?;
    let known = project.registry().all()?;
    let is_meant = |known: &&code_commit_runs::registry::Known| {
        known.name(&project.root) == wanted.change && project.kind(known).is_none()
    };
    if !known.iter().any(|known| is_meant(&known)) {
        let told = format!("{} is not a change of write_files", wanted.change);
        return Ok(Done::bad(told, Value::Null));
    }
    drop(project);
    let request = undo::Request {
        run: Some(&wanted.change),
        files: &wanted.files,
        ..undo::Request::default()
    };
    undo::run(&request, host)?;
    let told = format!("undone: {}", wanted.change);
    Ok(Done::good(told, json!({ "undone": wanted.change })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paths {
    paths: Vec<String>,
}

fn guard(wanted: &Paths, host: Host<'_>) -> Result<Done, Failure> {
    if wanted.paths.len() > MOST_PATHS {
        let told = format!("at most {MOST_PATHS} paths are judged at once");
        return Ok(Done::bad(told, Value::Null));
    }
    let paths: Vec<OsString> = wanted.paths.iter().map(OsString::from).collect();
    let verdicts = judge::paths(&host.root()?, &paths, host)?;
    let judged = wanted.paths.iter().zip(&verdicts).map(|(path, verdict)| {
        let (allow, code, reason, sha256) = match verdict {
            Verdict::Admitted(admitted) => {
                let hash = |before: &code_commit_guard::Before| hex(&before.sha256);
                (true, None, None, admitted.before().map(hash))
            }
            Verdict::Refused(refusal) => {
                let code = Some(refusal.code().as_str());
                (false, code, Some(refusal.to_string()), None)
            }
        };
        json!({ "path": path, "allow": allow, "code": code, "reason": reason, "sha256": sha256 })
    });
    let judged: Vec<Value> = judged.collect();
    let lines: Vec<String> = judged.iter().map(Value::to_string).collect();
    Ok(Done::good(lines.join("\n"), json!({ "paths": judged })))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    query: String,
    budget_tokens: Option<u64>,
}

fn context(wanted: &Wanted, host: Host<'_>) -> Result<Done, Failure> {
    let tree = place::work_tree(host.here()?)?;
    let keys = Keys::find(host.environment, tree.root());
    let redactor = host.output.strike_out(keys.exposed());
    let settings = config::load(tree.root(), &Options::default(), host)?;
    let budget = wanted.budget_tokens.unwrap_or(BUDGET).clamp(1, MOST_TOKENS);
    let options = rollup::Options {
        budget: Some(budget),
        ..rollup::Options::of(&settings)
    };
    let sources = Sources {
        tree: &tree,
        environment: host.environment,
        redactor: &redactor,
        query: &wanted.query,
        // A tool that only looks writes nothing.
        state: None,
    };
    let rollup = rollup::make(sources, &options, &settings)?;
    rollup.tell(host.output);
    let hashes = hashes(&rollup, &tree);
    let all = files(&rollup.text).map(|(path, text)| Chosen::of_all(path, text));
    let mut chosen = rollup.chosen.clone();
    if chosen.is_empty() {
        chosen.extend(all);
    }
    let lines = chosen.iter().map(|file| {
        let hash = hashes
            .get(file.path.as_str())
            .map(|hash| format!(" sha256 {hash}"));
        format!(
            "{} ({}, {}){}",
            file.path,
            file.form,
            file.why,
            hash.unwrap_or_default()
        )
    });
    let lines: Vec<String> = lines.collect();
    Ok(Done::good(
        format!("{}\n\n{}", lines.join("\n"), rollup.text),
        Value::Null,
    ))
}

/// Of the files that are shown whole, and that are on disk as they are shown.
fn hashes<'r>(rollup: &'r RollUp, tree: &code_commit_repo::WorkTree) -> HashMap<&'r str, String> {
    let end = |text: &'r str| text.strip_suffix('\n').unwrap_or(text).as_bytes();
    let hash = |(path, text): (&'r str, &'r str)| {
        let content = changes::on_disk(&tree.root().join(path))?;
        let is_shown = content.strip_suffix(b"\n").unwrap_or(&content) == end(text);
        is_shown.then(|| (path, sha256_hex(&content)))
    };
    files(&rollup.text).filter_map(hash).collect()
}
