//! The progress line.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A line at the bottom of the terminal that shows the elapsed time. Without a terminal there is
/// none.
#[derive(Debug)]
pub struct LiveLine {
    wanted: bool,
    bar: ProgressBar,
}

impl LiveLine {
    /// Creates it without a line; there will be one only if `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self { wanted, bar: ProgressBar::hidden() }
    }

    /// Starts a new line and its clock.
    pub fn begin(&mut self, text: &str) {
        self.clear();
        if !self.wanted {
            return;
        }
        self.bar = ProgressBar::new_spinner().with_message(text.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
            self.bar.set_style(style);
        }
        // A separate thread redraws it, so that it keeps moving while the model is silent.
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }

    /// Changes the text, not the clock.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    /// Prints something permanent above the line.
    pub fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.clear();
    }
}
