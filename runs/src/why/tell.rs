//! What `why` says of a line, and of a whole file.

use std::collections::BTreeSet;

use code_commit_engine::Ended;
use code_commit_report::{Output, STRONG, phrases, printable};
use code_commit_timeline::What;
use serde_json::{Value, json};

use super::origin::{Maker, Origins, Range};
use super::steps::{Run, Step};
use crate::order;
use crate::records::{self, account::Account};

/// What is known of the run, whatever its loop.
struct Facts {
    run: String,
    kind: String,
    round: u32,
    by: String,
    model: Option<String>,
    query: Option<String>,
    /// Refused replies until then, as round and codes.
    refused: Vec<(u32, Vec<String>)>,
    /// Builds and commands until the end of that round.
    builds: Vec<(u32, Ended)>,
    outcome: Option<String>,
    verdict: Option<&'static str>,
    folder: String,
}

const NOBODY: &str = "no run recorded here made it";

impl Origins {
    /// One object for each range; for people a table, or all about the only range.
    pub(super) fn tell(&self, file: &str, is_line: bool, root: &std::path::Path, output: &Output) {
        let width = self.ranges.iter().map(|range| span(range).len()).max().unwrap_or_default();
        for range in &self.ranges {
            let facts = self.facts(range.maker, root);
            output.object(&self.json(file, range, facts.as_ref()));
            let commit = self.commit(range);
            match (&facts, is_line) {
                (Some(facts), true) => facts.tell(&format!("{file}:{}", span(range)), &commit, output),
                (Some(facts), false) => {
                    let line = format!("{:>width$}  {}, {commit}", span(range), facts.line());
                    output.report_prose(&printable(&line));
                }
                (None, _) => {
                    output.report_prose(&printable(&format!("{:>width$}  {NOBODY}, {commit}", span(range))));
                }
            }
        }
    }

    /// `commit 1a2b3c4 (say hello)`, `not committed`.
    fn commit(&self, range: &Range) -> String {
        let source = self.sources.get(range.source);
        let commit = source.and_then(|source| Some((source.commit.as_ref()?, &source.summary)));
        commit.map_or_else(
            || "not committed".to_owned(),
            |(id, summary)| format!("commit {} ({summary})", id.get(..10).unwrap_or(id)),
        )
    }

    fn facts(&self, maker: Maker, root: &std::path::Path) -> Option<Facts> {
        match maker {
            Maker::Nobody => None,
            Maker::Step(at) => {
                let step = self.steps.get(at)?;
                Some(Facts::of_step(self.runs.get(step.run)?, step, root))
            }
            Maker::Commit(at) => {
                let commit = self.commits.get(at)?;
                let kind = if commit.run.starts_with(root.join(code_commit_names::ours::ABL)) {
                    "phase"
                } else {
                    "spec"
                };
                Some(Facts {
                    run: records::name(&commit.run),
                    kind: kind.to_owned(),
                    round: commit.turn,
                    by: format!("turn {} of the {}", commit.turn, commit.role),
                    model: commit.model.clone(),
                    query: None,
                    refused: Vec::new(),
                    builds: Vec::new(),
                    outcome: commit.outcome.clone(),
                    verdict: None,
                    folder: commit.run.display().to_string(),
                })
            }
        }
    }

    fn json(&self, file: &str, range: &Range, facts: Option<&Facts>) -> Value {
        let source = self.sources.get(range.source);
        let mut object = json!({
            "event": "why", "file": file, "lines": [range.lines.start(), range.lines.end()],
            "commit": source.and_then(|source| source.commit.as_ref()),
            "run": null, "loop": null, "round": null, "by": null, "model": null, "query": null,
            "refused": [], "builds": [], "outcome": null, "verdict": null, "folder": null,
        });
        let Some(facts) = facts else { return object };
        let refused = |(round, codes): &(u32, Vec<String>)| json!({ "round": round, "codes": codes });
        let build = |(round, ended): &(u32, Ended)| json!({ "round": round, "ended": ended });
        let known = json!({
            "run": facts.run, "loop": facts.kind, "round": facts.round, "by": facts.by, "model": facts.model,
            "query": facts.query, "refused": facts.refused.iter().map(refused).collect::<Vec<_>>(),
            "builds": facts.builds.iter().map(build).collect::<Vec<_>>(), "outcome": facts.outcome,
            "verdict": facts.verdict, "folder": facts.folder,
        });
        let known = known.as_object().cloned().unwrap_or_default();
        object.as_object_mut().into_iter().for_each(|members| members.extend(known.clone()));
        object
    }
}

/// `3`, `3-12`.
fn span(range: &Range) -> String {
    let (first, last) = (range.lines.start(), range.lines.end());
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

impl Facts {
    fn of_step(run: &Run, step: &Step, root: &std::path::Path) -> Self {
        let folder = &run.folder;
        let until = || run.steps.all.iter().filter(|of| of.round <= step.round);
        let model = until().filter_map(|of| of.call()?.served_model.clone()).next_back();
        let (mut refused, mut builds) = (Vec::new(), Vec::new());
        for of in until() {
            match &of.what {
                What::Change(change) if change.is_refused && of.round < step.round => {
                    let codes: BTreeSet<&String> = change.problems.iter().map(|one| &one.code).collect();
                    refused.push((of.round, codes.into_iter().cloned().collect()));
                }
                What::Command(command) if command.is_build => {
                    builds.extend(command.ended.map(|ended| (of.round, ended)));
                }
                What::Call(_) | What::Change(_) | What::Command(_) | What::Event(_) => {}
            }
        }
        let kind = run.known.kind(root);
        let title = || {
            let recorded = order::Recorded::load(&run.known, folder.clone()).ok()?;
            Some(recorded.read.order.title)
        };
        let asked = || Account::of(folder).json().get("query")?.as_str().map(str::to_owned);
        let query = if kind == "order" { title() } else { asked() };
        let summary = order::summary(folder, &run.past);
        Self {
            run: records::name(folder.path()),
            kind,
            round: step.round,
            by: format!("{}round {}", if step.by_build { "the build of " } else { "" }, step.round),
            model,
            query,
            refused,
            builds,
            outcome: run.past.outcome().map(|outcome| outcome.code().to_owned()),
            verdict: summary.map(|summary| summary.verdict.as_str()),
            folder: folder.path().strip_prefix(root).unwrap_or(folder.path()).display().to_string(),
        }
    }

    /// `2026-11-23-04-05-06-commit, round 2, gemini-2.5-pro, done`.
    fn line(&self) -> String {
        let model = self.model.as_deref().unwrap_or("model unknown");
        format!("{}, {}, {model}, {}", self.run, self.by, self.end())
    }

    fn end(&self) -> &str {
        self.verdict.or(self.outcome.as_deref()).unwrap_or("not finished")
    }

    fn tell(&self, place: &str, commit: &str, output: &Output) {
        let row = |name: &str, text: &str| output.report_prose(&format!("  {name:8}{}", printable(text)));
        let heading = format!("{place}  {}, {}", self.run, self.by);
        output.report(&output.paint(STRONG, &printable(&heading)));
        self.query.iter().for_each(|query| row("query", query));
        row("model", self.model.as_deref().unwrap_or("unknown"));
        for (round, codes) in &self.refused {
            row("refused", &format!("the reply of round {round}: {}", codes.join(", ")));
        }
        for (round, ended) in &self.builds {
            row("build", &format!("of round {round}: {}", phrases::ended(*ended)));
        }
        row("verdict", self.end());
        row("commit", commit.trim_start_matches("commit "));
        row("record", &self.folder);
    }
}
