//! The newest state of every file that the model has changed.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use code_commit_engine::Present;
use code_commit_parser::{Ask, Block};
use code_commit_prompt::commit::Replacement;

/// Files in the order of their last change; one entry for each path.
#[derive(Debug, Default)]
pub(crate) struct ChangedFiles(Vec<ChangedFile>);

#[derive(Debug)]
struct ChangedFile {
    path: String,
    /// A text that holds the content, and where; none for a file that was removed.
    content: Option<(Arc<str>, Range<usize>)>,
}

impl ChangedFiles {
    /// Takes in a reply that was applied. A file that was changed before is listed with its new state only (S1 §Running the Build).
    /// Of a file that is edited, the new content is in `edited`.
    pub(crate) fn learn(&mut self, reply: &Arc<str>, edited: &[Present]) {
        // A reply that was applied did parse; one that does not cannot have changed a file.
        let Ok(parsed) = code_commit_parser::parse(reply) else {
            return;
        };
        let mut files: Vec<ChangedFile> = parsed
            .blocks()
            .iter()
            .filter_map(|block| changed(reply, block, edited))
            .collect();
        // Several blocks may edit one file.
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.path.clone()));
        self.replace(files);
    }

    /// Takes in the content that a build gave to a file.
    pub(crate) fn rebuilt(&mut self, file: &Present) {
        self.replace(vec![ChangedFile::of(file)]);
    }

    fn replace(&mut self, files: Vec<ChangedFile>) {
        let paths: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        self.0.retain(|known| !paths.contains(known.path.as_str()));
        self.0.extend(files);
    }

    /// As the repair prompt lists them.
    pub(crate) fn replacements(&self) -> Vec<Replacement<'_>> {
        self.0
            .iter()
            .map(|file| match &file.content {
                Some((reply, place)) => Replacement::File {
                    path: &file.path,
                    data: reply.get(place.clone()).unwrap_or_default(),
                },
                None => Replacement::Removed { path: &file.path },
            })
            .collect()
    }
}

impl ChangedFile {
    fn of(Present { path, text }: &Present) -> Self {
        Self {
            path: path.clone(),
            content: Some((text.share(), 0..text.as_str().len())),
        }
    }
}

fn changed(reply: &Arc<str>, block: &Block, edited: &[Present]) -> Option<ChangedFile> {
    let (path, content) = match &block.ask {
        Ask::Edit(path) => {
            let path = reply.get(path.clone());
            return edited
                .iter()
                .find(|file| Some(file.path.as_str()) == path)
                .map(ChangedFile::of);
        }
        Ask::Write(path) => (path, Some((Arc::clone(reply), block.content.clone()))),
        Ask::Delete(path) => (path, None),
        Ask::User | Ask::Debug | Ask::NoChange => return None,
    };
    Some(ChangedFile {
        path: reply.get(path.clone()).unwrap_or_default().to_owned(),
        content,
    })
}
