//! The steps of a run, printed for a person.

use code_commit_engine::GRADER;
use code_commit_timeline::{ReadFile, RunView, Tone};

use crate::output::{BAD, DIM, GOOD, Output, Style, WARN, printable, printable_name};
use crate::phrases;
use crate::step::{StepLine, StepView};

/// This many files of a step are named.
const NAMED: usize = 10;

/// Prints what happened, each step with its round: `what` is the loop's word for one, and `read` reads a file of the record.
pub fn steps(what: &str, steps: &RunView, read: &ReadFile<'_>, output: &Output) {
    for step in &steps.all {
        let head = match step.round {
            0 => "preflight".to_owned(),
            round => format!("{what} {round}"),
        };
        let head = output.paint(DIM, &head);
        let say = |tone: Tone, text: &str| {
            output.report_prose(&format!("{head}  {}", output.paint(style(tone), text)));
        };
        let view = StepView::of(step, read);
        let files: Vec<String> = view.files.into_iter().map(|(_, file)| file).collect();
        let mut text = view.title;
        if !view.about.is_empty() {
            text += &format!(", {}", view.about);
        }
        if !files.is_empty() {
            text += &format!(" ({})", files.join(", "));
        }
        say(view.tone, &printable_name(&text));
        // The summary marks what the build names: it is often what the work is about.
        let is_shown = |line: &&StepLine| line.code != GRADER;
        let mut files = 0;
        for line in view.lines.iter().filter(is_shown) {
            files += usize::from(line.is_file);
            if line.is_file && files > NAMED {
                continue;
            }
            // A reason or a review may have several lines.
            let mut text = if line.tone == Tone::Plain && !line.is_file {
                printable(line.text.trim_end())
            } else {
                printable_name(line.text.trim_end())
            };
            if !line.code.is_empty() {
                text += &format!(" [{}]", printable_name(&line.code));
            }
            say(line.tone, &text);
        }
        if let Some(more) = phrases::rest(files, NAMED) {
            say(Tone::Plain, &more);
        }
    }
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => GOOD,
        Tone::Warning => WARN,
        Tone::Bad => BAD,
    }
}
