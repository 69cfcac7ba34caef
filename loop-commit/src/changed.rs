//! The newest state of every file that the model has changed.

use std::ops::Range;
use std::sync::Arc;

use parser::FileAction;
use prompt::commit::Replacement;

/// Files in the order of their last change; one entry for each path.
#[derive(Debug, Default)]
pub(crate) struct ChangedFiles(Vec<ChangedFile>);

#[derive(Debug)]
struct ChangedFile {
    path: String,
    /// The content's place in its reply; none for a file that was removed.
    content: Option<(Arc<str>, Range<usize>)>,
}

impl ChangedFiles {
    /// Takes in a reply that was applied. A file that was changed before is listed with its new state only (S1 §Running the Build).
    pub(crate) fn learn(&mut self, reply: &Arc<str>) {
        // A reply that was applied did parse; one that does not cannot have changed a file.
        let Ok(parsed) = parser::parse(reply) else { return };
        for file in parsed.files() {
            self.0.retain(|known| known.path != file.path);
            let content = match file.action {
                FileAction::Write(content) => Some((Arc::clone(reply), place(reply, content))),
                FileAction::Delete => None,
            };
            self.0.push(ChangedFile { path: file.path.to_owned(), content });
        }
    }

    /// As the repair prompt lists them.
    pub(crate) fn replacements(&self) -> Vec<Replacement<'_>> {
        self.0
            .iter()
            .map(|file| match &file.content {
                Some((reply, place)) => {
                    Replacement::File { path: &file.path, data: reply.get(place.clone()).unwrap_or_default() }
                }
                None => Replacement::Removed { path: &file.path },
            })
            .collect()
    }
}

/// Where in `whole` its slice `part` lies.
fn place(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}
