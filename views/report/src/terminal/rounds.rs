//! The rounds as sections of a job's log, which fold.

use crate::output::Output;

/// Ends the open section when it is dropped: one without an end would hide what is printed later.
pub(super) struct Rounds {
    output: Output,
    run: String,
    open: Option<u32>,
}

impl Rounds {
    /// Of the run whose record is at `log`.
    pub(super) fn of(output: &Output, log: &str) -> Self {
        let run = log.rsplit('/').next().unwrap_or_default().to_owned();
        Self {
            output: output.clone(),
            run,
            open: None,
        }
    }

    /// What is printed from now on belongs to `round`.
    pub(super) fn enter(&mut self, round: u32, title: &str) {
        if self.open == Some(round) {
            return;
        }
        self.end();
        self.output.section_start(&self.name(round), title);
        self.open = Some(round);
    }

    pub(super) fn end(&mut self) {
        if let Some(round) = self.open.take() {
            self.output.section_end(&self.name(round));
        }
    }

    fn name(&self, round: u32) -> String {
        format!("{}-{round}", self.run)
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        self.end();
    }
}
