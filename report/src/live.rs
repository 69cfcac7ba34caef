//! The one line that moves.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A line at the bottom of the terminal with the time that has passed. Without a terminal it is not there.
#[derive(Debug)]
pub struct LiveLine {
    wanted: bool,
    bar: ProgressBar,
}

impl LiveLine {
    /// No line yet; one will come if `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self { wanted, bar: ProgressBar::hidden() }
    }

    /// Starts the clock of a new line.
    pub fn begin(&mut self, text: &str) {
        self.clear();
        if !self.wanted {
            return;
        }
        self.bar = ProgressBar::new_spinner().with_message(text.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
            self.bar.set_style(style);
        }
        // Redrawn by a thread of its own, so that it lives while the model is silent.
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }

    /// Changes the words, not the clock.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    /// Prints something that stays, above the line.
    pub fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.clear();
    }
}
