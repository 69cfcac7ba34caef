//! The files that a reply asks for in place of a change: the next prompt shows them whole.

use std::io::Read as _;
use std::path::Path;

use code_commit_dir::Folder;
use code_commit_engine::{NEEDED, Problem};
use code_commit_prompt::rollup;

use super::{Intake, Rules};

/// The files of one reply at most, as the prompt says.
const MOST: usize = 20;

impl Rules {
    /// Shows what the code lists, while there is room for `most` bytes of it.
    pub(super) fn show_needed(&self, paths: &[&str], codebase: &str, most: u64) -> Intake {
        let (mut shown, mut problems, mut room) = (Vec::new(), Vec::new(), most);
        for path in paths.iter().take(MOST) {
            let text = self.needed(path, codebase);
            let message = match &text {
                None => format!("`{path}` cannot be shown: there is no such file that may be."),
                Some(text) if text.len() as u64 > room => {
                    format!("`{path}` cannot be shown: it does not fit.")
                }
                Some(text) => {
                    room -= text.len() as u64;
                    shown.push(((*path).to_owned(), text.clone()));
                    format!("`{path}` was asked for; all of it follows.")
                }
            };
            let path = Some((*path).to_owned());
            problems.push(Problem {
                path,
                ..Problem::new(NEEDED, message)
            });
        }
        if let Some(more) = paths.len().checked_sub(MOST).filter(|more| *more > 0) {
            let message = format!("{more} more cannot be shown: the limit is {MOST} files.");
            problems.push(Problem::new(NEEDED, message));
        }
        let lines = problems.iter().map(|one| format!("- {}\n", one.message));
        let lines: String = lines.collect();
        let report = format!(
            "The reply asked for files and changed none. Now answer with the change.\n{lines}"
        );
        Intake::Rejected {
            problems,
            report,
            // A reply with words for the user has another fence.
            said: Vec::new(),
            shown,
        }
    }

    /// The text of a file that the code names and does not show.
    fn needed(&self, path: &str, codebase: &str) -> Option<String> {
        if !rollup::lists(codebase, path) {
            return None;
        }
        let file = Folder::open(&self.root).and_then(|root| root.open_file_below(Path::new(path)));
        let mut limited = file.ok()??.take(rollup::LARGEST_FILE + 1);
        let mut text = String::new();
        limited.read_to_string(&mut text).ok()?;
        Some(text).filter(|text| rollup::may_show(path, text))
    }
}
