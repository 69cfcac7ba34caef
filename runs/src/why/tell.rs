//! What `why` says of a line, and of a whole file.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use code_commit_engine::{Ended, Outcome};
use code_commit_report::{Output, STRONG, phrases, printable};
use code_commit_timeline::{Run, What};
use serde_json::{Value, json};

use super::noted::Noted;
use super::origin::{Maker, Origins, Range};
use super::steps::{self, Step};

/// What is known of a range and of the run that made it.
struct Facts {
    of: Rc<Run>,
    round: Option<u32>,
    by: String,
    model: Option<String>,
    /// Refused replies until then, as round and codes.
    refused: Vec<(u32, Vec<String>)>,
    /// Builds and commands until the end of that round.
    builds: Vec<(u32, Ended)>,
    /// `None` where there is only a note.
    folder: Option<String>,
}

const NOBODY: &str = "no run recorded here made it";

impl Origins {
    /// One object for each range; for people a table, or all about the only range.
    pub(super) fn tell(&self, file: &str, is_line: bool, root: &Path, output: &Output) {
        let width = self
            .ranges
            .iter()
            .map(|range| span(range).len())
            .max()
            .unwrap_or_default();
        for range in &self.ranges {
            let facts = self.facts(range.maker, root);
            output.object(&self.json(file, range, facts.as_ref()));
            let commit = self.commit(range);
            match (&facts, is_line) {
                (Some(facts), true) => {
                    facts.tell(&format!("{file}:{}", span(range)), &commit, output)
                }
                (Some(facts), false) => {
                    let line = format!("{:>width$}  {}, {commit}", span(range), facts.line());
                    output.report_prose(&printable(&line));
                }
                (None, _) => {
                    output.report_prose(&printable(&format!(
                        "{:>width$}  {NOBODY}, {commit}",
                        span(range)
                    )));
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
            |(id, summary)| format!("commit {} ({summary})", short(id)),
        )
    }

    fn facts(&self, maker: Maker, root: &Path) -> Option<Facts> {
        match maker {
            Maker::Nobody => None,
            Maker::Step(at) => {
                let step = self.steps.get(at)?;
                Some(Facts::of_step(self.runs.get(step.run)?, step, root))
            }
            Maker::Commit(at) => {
                let commit = self.commits.get(at)?;
                Some(Facts {
                    of: Rc::clone(&commit.facts),
                    round: Some(commit.turn),
                    by: format!("turn {} of the {}", commit.turn, commit.role),
                    model: commit.model.clone(),
                    refused: Vec::new(),
                    builds: Vec::new(),
                    folder: Some(shown(&commit.folder, root)),
                })
            }
            Maker::Note(at) => Some(Facts::of_note(self.notes.get(at)?)),
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
        let refused =
            |(round, codes): &(u32, Vec<String>)| json!({ "round": round, "codes": codes });
        let build = |(round, ended): &(u32, Ended)| json!({ "round": round, "ended": ended });
        let of = &facts.of;
        let known = json!({
            "run": of.name, "loop": of.kind, "round": facts.round, "by": facts.by, "model": facts.model,
            "query": of.title(), "refused": facts.refused.iter().map(refused).collect::<Vec<_>>(),
            "builds": facts.builds.iter().map(build).collect::<Vec<_>>(),
            "outcome": of.steps.outcome.as_ref().map(Outcome::code),
            "verdict": facts.folder.as_ref().map(|_| &of.verdict), "folder": facts.folder,
        });
        let known = known.as_object().cloned().unwrap_or_default();
        object
            .as_object_mut()
            .into_iter()
            .for_each(|members| members.extend(known.clone()));
        object
    }
}

/// `3`, `3-12`.
fn span(range: &Range) -> String {
    let (first, last) = (range.lines.start(), range.lines.end());
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

fn shown(folder: &Path, root: &Path) -> String {
    folder
        .strip_prefix(root)
        .unwrap_or(folder)
        .display()
        .to_string()
}

impl Facts {
    fn of_step(run: &steps::Run, step: &Step, root: &Path) -> Self {
        let until = || run.steps.all.iter().filter(|of| of.round <= step.round);
        let model = until()
            .filter_map(|of| of.call()?.served_model.clone())
            .next_back();
        let (mut refused, mut builds) = (Vec::new(), Vec::new());
        for of in until() {
            match &of.what {
                What::Change(change) if change.is_refused && of.round < step.round => {
                    let codes: BTreeSet<&String> =
                        change.problems.iter().map(|one| &one.code).collect();
                    refused.push((of.round, codes.into_iter().cloned().collect()));
                }
                What::Command(command) if command.is_build() => {
                    builds.extend(command.ended.map(|ended| (of.round, ended)));
                }
                What::Call(_) | What::Change(_) | What::Command(_) | What::Event(_) => {}
            }
        }
        Self {
            of: Rc::clone(&run.facts),
            round: Some(step.round),
            by: format!(
                "{}round {}",
                if step.by_build { "the build of " } else { "" },
                step.round
            ),
            model,
            refused,
            builds,
            folder: Some(shown(&run.folder, root)),
        }
    }

    fn of_note(note: &Noted) -> Self {
        let of = Run {
            name: note.run.clone(),
            kind: note.kind.clone(),
            ..Run::default()
        };
        let by = format!("by the note on commit {}", short(&note.revision));
        let (refused, builds) = (Vec::new(), Vec::new());
        Self {
            of: Rc::new(of),
            round: None,
            by,
            model: note.model.clone(),
            refused,
            builds,
            folder: None,
        }
    }

    /// `2026-11-23-04-05-06-commit, round 2, gemini-2.5-pro, done`.
    fn line(&self) -> String {
        let model = self.model.as_deref().unwrap_or("model unknown");
        let parts = [
            self.of.name.as_str(),
            self.by.as_str(),
            model,
            self.of.verdict.as_str(),
        ];
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn tell(&self, place: &str, commit: &str, output: &Output) {
        let row =
            |name: &str, text: &str| output.report_prose(&format!("  {name:8}{}", printable(text)));
        let heading = format!("{place}  {}, {}", self.of.name, self.by);
        output.report(&output.paint(STRONG, &printable(&heading)));
        self.of.title().iter().for_each(|query| row("query", query));
        row("model", self.model.as_deref().unwrap_or("unknown"));
        for (round, codes) in &self.refused {
            row(
                "refused",
                &format!("the reply of round {round}: {}", codes.join(", ")),
            );
        }
        for (round, ended) in &self.builds {
            row(
                "build",
                &format!("of round {round}: {}", phrases::ended(*ended)),
            );
        }
        self.folder
            .iter()
            .for_each(|_| row("verdict", &self.of.verdict));
        row("commit", commit.trim_start_matches("commit "));
        row("record", self.folder.as_deref().unwrap_or("not here"));
    }
}
