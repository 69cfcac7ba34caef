//! Conflicts between the paths of one reply.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use crate::fold::fold;
use crate::patterns::folders;
use crate::refusal::{Code, Refusal};

/// The names of one reply as a tree, by their folded form. Each name is stored once, however long
/// the path before it is.
pub(crate) struct Batch<'a> {
    nodes: Vec<Node<'a>>,
    /// Indexed by parent node and folded name.
    names: HashMap<(usize, Cow<'a, str>), usize>,
    /// As they are spelled.
    paths: BTreeSet<&'a str>,
}

/// One node of the reply's tree. Spellings are whole paths.
#[derive(Default)]
struct Node<'a> {
    /// As a file: every path that named it.
    files: Vec<&'a str>,
    /// As a folder: the first two spellings that differ.
    folders: (Option<&'a str>, Option<&'a str>),
    /// Some file below it.
    below: Option<&'a str>,
}

/// A folder on the way to a path of the reply. Used to ask what the reply puts into it.
#[derive(Clone, Copy)]
pub(crate) struct Place(usize);

impl<'a> Batch<'a> {
    pub(crate) fn of(paths: impl Iterator<Item = &'a str>) -> Batch<'a> {
        let mut batch = Batch {
            nodes: vec![Node::default()],
            names: HashMap::new(),
            paths: BTreeSet::new(),
        };
        paths.for_each(|path| batch.add(path));
        batch
    }

    fn add(&mut self, path: &'a str) {
        let mut at = 0;
        for below in folders(path) {
            at = self.enter(at, below);
            if let Some(node) = self.nodes.get_mut(at) {
                node.below.get_or_insert(path);
                match node.folders {
                    (None, _) => node.folders.0 = Some(below),
                    (Some(first), None) if first != below => node.folders.1 = Some(below),
                    (Some(_), _) => {}
                }
            }
        }
        at = self.enter(at, path);
        if let Some(node) = self.nodes.get_mut(at) {
            node.files.push(path);
        }
        self.paths.insert(path);
    }

    /// The node for the last name of `path` in the folder `at`; created if necessary.
    fn enter(&mut self, at: usize, path: &'a str) -> usize {
        let next = self.nodes.len();
        let found = *self.names.entry((at, folded_name(path))).or_insert(next);
        if found == next {
            self.nodes.push(Node::default());
        }
        found
    }

    /// The root and every folder on the way to `path`, each with its node.
    pub(crate) fn folders<'p>(&self, path: &'p str) -> Vec<(&'p str, Place)> {
        let mut way = vec![("", Place(0))];
        for folder in folders(path) {
            let Some(Place(at)) = way.last().map(|(_, place)| *place) else {
                break;
            };
            let Some(below) = self.names.get(&(at, folded_name(folder))) else {
                break;
            };
            way.push((folder, Place(*below)));
        }
        way
    }

    /// The conflict between `path`, which is one of the reply's, and its other paths. `are_two` says whether the file
    /// system keeps two spellings apart.
    pub(crate) fn refuses(
        &self,
        path: &str,
        are_two: &dyn Fn(&str, &str) -> bool,
    ) -> Option<Refusal> {
        let refuse = |code, other: &str| Some(Refusal::with(code, path.as_bytes(), other));
        let way = self.folders(path);
        let parent = way.last().map(|(_, place)| place.0)?;
        let own = self
            .nodes
            .get(*self.names.get(&(parent, folded_name(path)))?)?;
        // The path itself is among them, once.
        let again = own.files.iter().filter(|file| **file == path).nth(1);
        let mut others = own.files.iter().filter(|file| **file != path);
        if let Some(other) = again.or_else(|| others.find(|other| !are_two(path, other))) {
            return refuse(Code::Duplicate, other);
        }
        if let Some(file) = own.below {
            return refuse(Code::FileAndFolder, file);
        }
        for (folder, Place(at)) in way.into_iter().skip(1) {
            let node = self.nodes.get(at)?;
            if let Some(file) = node.files.first() {
                return refuse(Code::FileAndFolder, file);
            }
            if let (Some(first), Some(second)) = node.folders {
                let other = if first == folder { second } else { first };
                if !are_two(folder, other) {
                    return refuse(Code::Duplicate, &format!("{other}/"));
                }
            }
        }
        None
    }

    /// Whether the reply names this path, or one below it, in this spelling.
    pub(crate) fn has(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let mut next = self.paths.range(below.as_str()..);
        self.paths.contains(path) || next.next().is_some_and(|next| next.starts_with(&below))
    }

    /// Whether the reply writes a file `name` in that folder.
    pub(crate) fn puts(&self, Place(at): Place, name: &str) -> bool {
        self.names.contains_key(&(at, folded_name(name)))
    }
}

/// The last name of `path`, folded. Most names are already in folded form.
fn folded_name(path: &str) -> Cow<'_, str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_folded = name
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_folded {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(fold(name))
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;

    #[test]
    fn a_name_is_kept_once_however_deep_it_stands() {
        let path = |n: usize| {
            (0..63)
                .map(|depth| format!("folder-{n}-{depth}/"))
                .collect::<String>()
                + "file"
        };
        let paths: Vec<String> = (0..100).map(|n| format!("shared/{}", path(n))).collect();
        let batch = Batch::of(paths.iter().map(String::as_str));
        assert_eq!(batch.nodes.len(), 2 + 100 * 64);
        let bytes: usize = batch.names.keys().map(|(_, name)| name.len()).sum();
        assert!(bytes < paths.iter().map(String::len).sum());
        assert!(
            paths
                .iter()
                .all(|path| batch.refuses(path, &|_, _| false).is_none())
        );
    }
}
