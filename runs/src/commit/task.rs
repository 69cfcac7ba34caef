//! The loop of a run and its inputs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_logging::Layout;
use code_commit_names::Binds;
use code_commit_prompt::edits::Form;
use code_commit_settings::Settings;
use serde::{Deserialize, Serialize};

use crate::records;

/// The form in which a model may give its changes.
pub fn form(settings: &Settings) -> Form {
    if settings.edits.value {
        Form::Edits
    } else {
        Form::Files
    }
}

/// The loop and its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "loop", rename_all = "kebab-case")]
pub enum Task {
    /// S1.
    Commit {
        /// What the user asks for.
        query: Excerpt,
        /// `agent-config/codeRollup.txt`.
        codebase: Excerpt,
        /// The paths that the model is told it may not write.
        protected: Vec<String>,
    },
    /// S0.
    Implement {
        /// `gemini-system-prompt.txt`.
        system: Excerpt,
        /// What the user asks for.
        query: Excerpt,
        /// `codeRollup.txt`.
        codebase: Excerpt,
    },
}

/// A text that is part of the first prompt, so that the record need not store it twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Range", into = "Range")]
pub struct Excerpt {
    start: usize,
    end: usize,
    pub(super) text: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct Range {
    start: usize,
    end: usize,
}

impl From<Range> for Excerpt {
    fn from(Range { start, end }: Range) -> Self {
        Self {
            start,
            end,
            text: Arc::default(),
        }
    }
}

impl From<Excerpt> for Range {
    fn from(Excerpt { start, end, .. }: Excerpt) -> Self {
        Self { start, end }
    }
}

impl Excerpt {
    pub(super) fn new(place: std::ops::Range<usize>, text: String) -> Self {
        Self {
            start: place.start,
            end: place.end,
            text: text.into(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn fetch(&mut self, prompt: &str) -> Option<()> {
        self.text = prompt.get(self.start..self.end)?.into();
        Some(())
    }
}

impl Task {
    /// Its name, as `loop` of `run.json`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Commit { .. } => "commit",
            Self::Implement { .. } => "implement",
        }
    }

    /// The default loop with these inputs.
    pub fn commit(
        query: String,
        codebase: String,
        protected: Vec<String>,
        settings: &Settings,
    ) -> Self {
        let places = code_commit_prompt::commit::initial(&code_commit_prompt::commit::Task {
            query: &query,
            codebase: &codebase,
            protected: &protected,
            form: form(settings),
        });
        Self::Commit {
            query: Excerpt::new(places.query, query),
            codebase: Excerpt::new(places.codebase, codebase),
            protected,
        }
    }

    /// The first loop with these inputs.
    pub fn implement(system: String, query: String, codebase: String) -> Self {
        let task = code_commit_prompt::implement::Task {
            system: &system,
            query: &query,
            codebase: &codebase,
        };
        let places = code_commit_prompt::implement::initial(&task);
        Self::Implement {
            system: Excerpt::new(places.system, system),
            query: Excerpt::new(places.query, query),
            codebase: Excerpt::new(places.codebase, codebase),
        }
    }

    /// The code that the model is sent.
    pub(crate) fn codebase(&self) -> &Arc<str> {
        match self {
            Self::Commit { codebase, .. } | Self::Implement { codebase, .. } => &codebase.text,
        }
    }

    /// What the user asks for.
    pub(super) fn query(&self) -> &str {
        match self {
            Self::Commit { query, .. } | Self::Implement { query, .. } => query.text(),
        }
    }

    /// The byte range of the query in the first prompt.
    pub(crate) fn query_in_prompt(&self) -> std::ops::Range<usize> {
        match self {
            Self::Commit { query, .. } | Self::Implement { query, .. } => query.start..query.end,
        }
    }

    /// The names of a round's files.
    pub(crate) fn layout(&self) -> Layout {
        match self {
            Self::Commit { .. } => Layout::NumberFirst,
            Self::Implement { .. } => Layout::QueryFirst,
        }
    }

    /// Where its runs are kept.
    pub fn logs(&self, root: &Path) -> PathBuf {
        match self {
            Self::Commit { .. } => records::logs(root),
            Self::Implement { .. } => records::implement_logs(root),
        }
    }

    /// A run folder's name without its number.
    pub fn folder_name(&self, stamp: &str) -> String {
        match self {
            Self::Commit { .. } => format!("{stamp}-commit"),
            Self::Implement { .. } => stamp.to_owned(),
        }
    }

    /// Which protected names apply to it.
    pub(crate) fn binds(&self) -> Binds {
        match self {
            Self::Commit { .. } => Binds::Commit,
            Self::Implement { .. } => Binds::Implement,
        }
    }

    /// Where the model's messages to the user are kept, besides the terminal (S0 §Implementation Details).
    pub(crate) fn said_log(&self, root: &Path) -> Option<PathBuf> {
        match self {
            Self::Commit { .. } => None,
            Self::Implement { .. } => Some(root.join(code_commit_names::ours::USER_OUTPUT)),
        }
    }

    pub(super) fn excerpts_mut(&mut self) -> Vec<&mut Excerpt> {
        match self {
            Self::Commit {
                query, codebase, ..
            } => vec![query, codebase],
            Self::Implement {
                system,
                query,
                codebase,
            } => vec![system, query, codebase],
        }
    }
}
