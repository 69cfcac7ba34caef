//! A run with everything that is known of it.

use std::collections::BTreeMap;

use code_commit_engine::{Changed, Outcome};
use serde_json::Value;

use crate::step::{RunView, What};

/// Characters of a title.
const TITLE: usize = 60;

/// A run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// The name of its folder.
    pub name: String,
    /// `commit`, `implement`, `order`, `phase`, `spec` or `apply`.
    pub kind: String,
    /// The version that made it.
    pub version: String,
    /// The model that was asked for, `provider/name`; empty if no model was named.
    pub model: String,
    /// What was asked for.
    pub query: String,
    /// What a person said to the finished run that it goes on from.
    pub words: Option<String>,
    /// How it ended, in a word: a verdict, an outcome, or that it has not.
    pub verdict: String,
    /// Whether it reached its goal; `None` if it has not ended.
    pub is_good: Option<bool>,
    /// What else was said about its end.
    pub remark: Option<String>,
    /// The name that its caller gave the work.
    pub key: Option<String>,
    /// The finished run that it goes on from.
    pub parent: Option<String>,
    /// Whether it was undone since.
    pub undone: bool,
    /// The commit that was checked out when it began.
    pub head: Option<String>,
    /// What happened.
    pub steps: RunView,
    /// The content of files that it read and wrote.
    pub contents: Contents,
}

/// The content of files, by SHA-256 in hex.
#[derive(Debug, Clone, Default)]
pub struct Contents(pub BTreeMap<String, Vec<u8>>);

/// A file before and after; `None` for a missing file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileEdit<'r> {
    /// Relative to the root.
    pub path: &'r str,
    /// SHA-256 of the old content.
    pub before: Option<&'r str>,
    /// SHA-256 of the new content.
    pub after: Option<&'r str>,
    /// Its permission bits before, if they are known.
    pub before_mode: Option<u32>,
    /// Its permission bits after.
    pub after_mode: Option<u32>,
    /// Whether no reply and no agent changed it, but a command did.
    pub by_command: bool,
}

impl Contents {
    /// The old and the new content of a file, empty for a missing one; `None` if the record does not have them.
    pub fn both(&self, before: Option<&str>, after: Option<&str>) -> Option<(&[u8], &[u8])> {
        let of = |hash: Option<&str>| match hash {
            None => Some(&[][..]),
            Some(hash) => self.0.get(hash).map(Vec::as_slice),
        };
        Some((of(before)?, of(after)?))
    }
}

impl Run {
    /// What the plan of a run says of it: its `run.json`, whatever its loop. A run without a plan is one of `apply`.
    pub fn planned(name: &str, plan: &Value) -> Self {
        let word = |at: &str| plan.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let kind = word("/loop").unwrap_or_else(|| "apply".to_owned());
        let model = match kind.as_str() {
            "order" => "/terms/llm_model",
            "phase" => "/builder_model",
            "spec" => "/agent/agent_model",
            _ => "/settings/options/model/name",
        };
        Self {
            name: name.to_owned(),
            model: word(model).unwrap_or_default(),
            version: word("/version").unwrap_or_default(),
            key: word("/key"),
            parent: word("/parent"),
            head: word("/head").or_else(|| word("/repo_baseline_commit")),
            kind,
            ..Self::default()
        }
    }

    /// The beginning of what was asked for, on one line; `None` if that is not known.
    pub fn title(&self) -> Option<String> {
        title(self.asked())
    }

    /// What this run was asked for beyond the one that it goes on from.
    pub fn asked(&self) -> &str {
        self.words.as_deref().unwrap_or(&self.query)
    }

    /// The first line of what was asked for, or the run's name.
    pub fn headline(&self) -> &str {
        first_line(self.asked()).unwrap_or(&self.name)
    }

    /// How it stands: what was undone has no other verdict any more.
    pub fn stands(&self) -> &str {
        if self.undone { "undone" } else { &self.verdict }
    }

    /// Whether its loop missed its goal. It did not if no model could be asked, the build could not be started or a person has to
    /// decide.
    pub fn has_missed(&self) -> bool {
        let cause = self.steps.outcome.as_ref().and_then(Outcome::cause);
        let is_elsewhere = cause.is_some();
        self.is_good == Some(false) && !self.undone && !is_elsewhere
    }

    /// The files that differ between the beginning and the end of the run, by path.
    pub fn edits(&self) -> Vec<FileEdit<'_>> {
        let mut edits: BTreeMap<&str, FileEdit<'_>> = BTreeMap::new();
        for step in &self.steps.all {
            if matches!(&step.what, What::Remark(remark) if remark.is_restore) {
                edits.clear();
            }
            let by_command = matches!(step.what, What::Command(_));
            for change in step.changes() {
                let new = FileEdit::of(change, by_command);
                let edit = edits.entry(&change.path).or_insert_with(|| new.clone());
                (edit.after, edit.after_mode) = (new.after, new.after_mode);
                edit.by_command &= by_command;
            }
        }
        edits
            .into_values()
            .filter(|edit| edit.before != edit.after || edit.changes_mode())
            .collect()
    }
}

/// The beginning of the first line of a text that is not blank.
pub fn title(text: &str) -> Option<String> {
    let line = first_line(text)?;
    let mut title: String = line.chars().take(TITLE).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

fn first_line(text: &str) -> Option<&str> {
    text.lines()
        .map(|line| line.trim_matches(['#', ' ']))
        .find(|line| !line.is_empty())
}

impl<'r> FileEdit<'r> {
    /// What a change did to its file.
    pub fn of(change: &'r Changed, by_command: bool) -> Self {
        Self {
            path: &change.path,
            before: change.before_sha256.as_deref(),
            after: change.after_sha256.as_deref(),
            before_mode: change.before_mode,
            after_mode: change.after_mode,
            by_command,
        }
    }

    /// Whether git sees another mode than before, which it does of the owner's executable bit only.
    fn changes_mode(&self) -> bool {
        let modes = self.before_mode.zip(self.after_mode);
        modes.is_some_and(|(before, after)| (before ^ after) & 0o100 != 0)
    }

    /// `A` added, `M` modified, `D` deleted, as in git.
    pub fn letter(&self) -> char {
        match (self.before, self.after) {
            (None, _) => 'A',
            (Some(_), None) => 'D',
            (Some(_), Some(_)) => 'M',
        }
    }
}
