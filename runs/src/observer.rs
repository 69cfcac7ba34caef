//! The observer of a run of a loop that calls a model.

use code_commit_llm::ModelId;
use code_commit_logging::RunFolder;
use code_commit_loop_commit::on_screen;
use code_commit_perform::{Observer, output_text};
use code_commit_report::{Counts, Ndjson, Output, Printout, Terminal};

/// The observer of a run recorded in `folder`.
pub(crate) fn observer(
    output: &Output,
    model: &ModelId,
    counts: Counts,
    folder: &RunFolder,
) -> Box<dyn Observer> {
    if output.json {
        return Box::new(Ndjson(output.clone()));
    }
    let folder = folder.clone();
    let read = move |file: &str| {
        let text = output_text(&folder, file).ok()?;
        let is_whole = text.whole_bytes() == text.as_str().len();
        Some(Printout {
            text: on_screen(text.as_str()).into_owned(),
            is_whole,
        })
    };
    Box::new(Terminal::new(
        output.clone(),
        model.to_string(),
        counts,
        Box::new(read),
    ))
}
