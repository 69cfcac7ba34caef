//! One step of a run, as the page shows it.

use code_commit_engine::Cause;
use code_commit_report::{StepLine, StepView};
use code_commit_timeline::{FileEdit, Run, Step, Tone, What};

use crate::diff::Diff;
use crate::text::{Folded, Texts};

/// A step with its texts and diffs to unfold.
#[derive(Default)]
pub(crate) struct StepPart {
    pub(crate) view: StepView,
    pub(crate) texts: Vec<Folded>,
    pub(crate) diffs: Vec<Diff>,
    /// What explains a failure: lines of an output, a contract, the words of a model.
    pub(crate) why: String,
}

impl StepPart {
    pub(crate) fn of(step: &Step, run: &Run, texts: &Texts<'_>) -> Self {
        let view = StepView::of(step, &|file| texts.whole(file));
        let is_open = |label| view.tone == Tone::Bad && !matches!(label, "Prompt" | "Reply");
        let files = view.files.iter();
        let by_command = matches!(step.what, What::Command(_));
        let changes = step.changes().iter();
        let diffs = changes
            .filter(|change| change.letter().is_some())
            .map(|change| Diff::of(&FileEdit::of(change, by_command), &run.contents));
        Self {
            texts: files
                .filter_map(|(label, file)| texts.folded(label, file, is_open(*label)))
                .collect(),
            diffs: diffs.collect(),
            view,
            why: String::new(),
        }
    }

    /// What a person has to know.
    pub(crate) fn of_cause(cause: &Cause) -> Self {
        let mut part = Self::default();
        part.view.cause(cause);
        part
    }

    /// The step that explains why the run failed, with `detail` of what was said about it.
    pub(crate) fn explains(mut self, detail: String) -> Self {
        let is_said = self.reasons().any(|line| line.text.contains(&detail));
        if self.view.files.iter().any(|(label, _)| *label == "Output") {
            let outputs: Vec<String> = self.texts.iter().map(Folded::why).collect();
            self.why = outputs.join("\n");
        } else if !is_said {
            self.why = detail;
        }
        self
    }

    /// Its sentences without files and warnings.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &StepLine> {
        let is_reason =
            |line: &&StepLine| !line.is_file && matches!(line.tone, Tone::Bad | Tone::Plain);
        self.view.lines.iter().filter(is_reason)
    }
}
