//! Who wrote each line of a file, step by step.

use std::collections::BTreeMap;

use code_commit_timeline::Contents;
use similar::{ChangeTag, TextDiff};

use crate::id::hex;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Author {
    /// A model, if its name is known.
    Model(Option<String>),
    Command,
}

#[derive(Default)]
pub(crate) struct Files(BTreeMap<String, File>);

struct File {
    sha256: String,
    /// The author of each line; `None` for lines that were there before.
    lines: Vec<Option<Author>>,
}

/// Lines in a row by one author, counted from 1, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) author: Author,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) sha256: String,
}

impl Files {
    /// A file was changed. Lines that it keeps stay with their author.
    pub(crate) fn learn(
        &mut self,
        path: &str,
        (before, after): (Option<&str>, Option<&str>),
        author: &Author,
        contents: &Contents,
    ) {
        let known = self.0.remove(path);
        let Some(after) = after else { return };
        if let Some(known) = known.as_ref().filter(|known| known.sha256 == after) {
            let File { sha256, lines } = known;
            self.0.insert(
                path.to_owned(),
                File {
                    sha256: sha256.clone(),
                    lines: lines.clone(),
                },
            );
            return;
        }
        let Some((old, new)) = contents.both(before, Some(after)) else {
            return;
        };
        let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
            return;
        };
        let mut owners = known.filter(|known| Some(known.sha256.as_str()) == before);
        let mut lines = Vec::new();
        for change in TextDiff::from_lines(old, new).iter_all_changes() {
            let was = |index: usize| {
                owners
                    .as_mut()
                    .and_then(|known| known.lines.get_mut(index)?.take())
            };
            match change.tag() {
                ChangeTag::Equal => lines.push(change.old_index().and_then(was)),
                ChangeTag::Insert => lines.push(Some(author.clone())),
                ChangeTag::Delete => {}
            }
        }
        self.0.insert(
            path.to_owned(),
            File {
                sha256: after.to_owned(),
                lines,
            },
        );
    }

    /// The tree is as it was before the run.
    pub(crate) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// What the run wrote of a file; the file then counts as one that was there before.
    pub(crate) fn take(&mut self, path: &str, contents: &Contents) -> Vec<Range> {
        let Some(File { sha256, lines }) = self.0.remove(path) else {
            return Vec::new();
        };
        let bytes = contents
            .0
            .get(&sha256)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let text: Vec<&str> = std::str::from_utf8(bytes)
            .unwrap_or_default()
            .split_inclusive('\n')
            .collect();
        let mut ranges = Vec::new();
        let mut at = 0;
        for group in lines.chunk_by(PartialEq::eq) {
            let of = at..at + group.len();
            at = of.end;
            if let Some(Some(author)) = group.first() {
                let content = text.get(of.clone()).unwrap_or_default().concat();
                let sha256 = hex(&[&content], 64);
                ranges.push(Range {
                    author: author.clone(),
                    start: of.start + 1,
                    end: of.end,
                    sha256,
                });
            }
        }
        ranges
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
