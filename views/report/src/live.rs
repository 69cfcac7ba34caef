//! The progress lines.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// A line at the bottom of the terminal that shows the elapsed time, and lines below it with what a command
/// printed last. Without a terminal there are none.
#[derive(Debug)]
pub struct LiveLine {
    wanted: bool,
    screen: MultiProgress,
    bar: ProgressBar,
    below: Vec<ProgressBar>,
}

impl LiveLine {
    /// Creates it without a line; there will be one only if `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self {
            wanted,
            screen: MultiProgress::new(),
            bar: ProgressBar::hidden(),
            below: Vec::new(),
        }
    }

    /// Starts a new line and its clock.
    pub fn begin(&mut self, text: &str) {
        self.clear();
        if !self.wanted {
            return;
        }
        self.bar = self.add("{spinner} {wide_msg} {elapsed}");
        self.bar.set_message(text.to_owned());
        // A separate thread redraws it, so that it keeps moving while the model is silent.
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }

    /// Changes the text, not the clock.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    /// Shows these lines below the line, in the place of those before. Each is cut to the width of the terminal.
    pub(crate) fn show_below(&mut self, lines: &[String]) {
        if self.bar.is_finished() || !self.wanted {
            return;
        }
        while self.below.len() < lines.len() {
            self.below.push(self.add("  {wide_msg}"));
        }
        self.below
            .iter()
            .zip(lines)
            .for_each(|(bar, line)| bar.set_message(line.clone()));
    }

    fn add(&self, template: &str) -> ProgressBar {
        let bar = self.screen.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }

    /// Prints something permanent above the lines.
    pub fn above(&self, print: impl FnOnce()) {
        if self.wanted {
            self.screen.suspend(print);
        } else {
            print();
        }
    }

    /// Removes the lines.
    pub fn clear(&mut self) {
        self.below.drain(..).for_each(|bar| bar.finish_and_clear());
        self.bar.finish_and_clear();
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.clear();
    }
}
