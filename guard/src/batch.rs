//! What the paths of one reply must not be to each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::fold::fold;
use crate::patterns::folders;
use crate::refusal::{Code, Refusal};

/// The names of one reply, by what they fold to.
#[derive(Default)]
pub(crate) struct Batch {
    /// Folded path to the spellings of it as a file, one for each time that it was named.
    files: BTreeMap<String, Vec<String>>,
    /// Folded path to the spellings of it as a folder.
    folders: BTreeMap<String, BTreeSet<String>>,
    /// For each folder, the folded names that the reply puts into it.
    children: BTreeMap<String, BTreeSet<String>>,
}

impl Batch {
    pub(crate) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Batch {
        let mut batch = Batch::default();
        for path in paths {
            batch.files.entry(fold(path)).or_default().push(path.to_owned());
            for folder in folders(path) {
                batch.folders.entry(fold(folder)).or_default().insert(folder.to_owned());
            }
            for below in folders(path).chain([path]) {
                let (folder, name) = below.rsplit_once('/').unwrap_or(("", below));
                batch.children.entry(folder.to_owned()).or_default().insert(fold(name));
            }
        }
        batch
    }

    /// What is wrong with `path` beside the other paths.
    pub(crate) fn refuses(&self, path: &str) -> Option<Refusal> {
        let refuse = |code, other: &str| Some(Refusal::with(code, path.as_bytes(), other));
        let folded = fold(path);
        if let Some([first, second, ..]) = self.files.get(&folded).map(Vec::as_slice) {
            return refuse(Code::Duplicate, if first == path { second } else { first });
        }
        let below = format!("{folded}/");
        if let Some((_, files)) =
            self.files.range(below.clone()..).next().filter(|(file, _)| file.starts_with(&below))
        {
            return refuse(Code::FileAndFolder, files.first().map_or("", String::as_str));
        }
        for folder in folders(path) {
            let folded = fold(folder);
            if let Some(file) = self.files.get(&folded).and_then(|files| files.first()) {
                return refuse(Code::FileAndFolder, file);
            }
            let spellings = self.folders.get(&folded).into_iter().flatten();
            if let Some(other) = spellings.into_iter().find(|other| *other != folder) {
                return refuse(Code::Duplicate, &format!("{other}/"));
            }
        }
        None
    }

    /// Whether the reply puts `name` into `folder`.
    pub(crate) fn puts(&self, folder: &str, name: &str) -> bool {
        self.children.get(folder).is_some_and(|names| names.contains(&fold(name)))
    }
}
