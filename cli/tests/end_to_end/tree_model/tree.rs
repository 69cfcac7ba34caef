//! A tree of files in memory: what is at each path, and what a plan does to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// What is at a path. Modes are without the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Folder(u32),
    File(u32, String),
    Link(String),
    /// A FIFO, a socket or a device.
    Other,
}

/// By path from the root. A byte that is not UTF-8 stands as U+FFFD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<String, Node>);

/// The one byte that is not UTF-8, as the names here have it.
const NOT_UTF8: char = '\u{fffd}';

/// What the harness and git keep for themselves, and what the scene itself needs.
const OWN: [&str; 10] = [
    ".git",
    ".abl",
    ".code-commit",
    ".cuggino",
    "agent-config",
    "builder_reports",
    "logs",
    "prompts",
    "build.sh",
    "begun.o",
];

/// The path as bytes of the system.
pub fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for char in text.chars() {
        match char {
            NOT_UTF8 => bytes.push(0xFF),
            char => bytes.extend(char.to_string().as_bytes()),
        }
    }
    bytes
}

pub fn on_disk(root: &Path, path: &str) -> PathBuf {
    root.join(OsString::from_vec(bytes(path)))
}

/// The folder of a path; empty for the root.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

pub fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// Whether a path is another one or below it.
pub fn is_at_or_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The paths above one, from the root on.
pub fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

impl Tree {
    /// What is on disk, without what is somebody's own.
    pub fn read(root: &Path) -> Self {
        let (mut found, mut todo) = (BTreeMap::new(), vec![root.to_owned()]);
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let below = path.strip_prefix(root).unwrap();
                let name = String::from_utf8_lossy(below.as_os_str().as_bytes()).into_owned();
                if OWN.contains(&name.as_str()) {
                    continue;
                }
                let stat = fs::symlink_metadata(&path).unwrap();
                let mode = stat.permissions().mode() & 0o7777;
                let node = if stat.is_symlink() {
                    Node::Link(fs::read_link(&path).unwrap().display().to_string())
                } else if stat.is_dir() {
                    todo.push(path);
                    Node::Folder(mode)
                } else if stat.is_file() {
                    Node::File(
                        mode,
                        String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
                    )
                } else {
                    Node::Other
                };
                found.insert(name, node);
            }
        }
        Self(found)
    }

    /// Makes the entries that are chosen.
    pub fn make(&self, root: &Path, is_chosen: impl Fn(&str) -> bool) {
        for (path, node) in self.0.iter().filter(|(path, _)| is_chosen(path)) {
            let place = on_disk(root, path);
            match node {
                Node::Folder(_) => fs::create_dir_all(&place).unwrap(),
                Node::File(_, text) => {
                    fs::create_dir_all(place.parent().unwrap()).unwrap();
                    fs::write(&place, text).unwrap();
                }
                Node::Link(target) => {
                    fs::create_dir_all(place.parent().unwrap()).unwrap();
                    symlink(target, &place).unwrap();
                }
                Node::Other => unreachable!("no tree begins with one"),
            }
            if let Node::Folder(mode) | Node::File(mode, _) = node {
                fs::set_permissions(&place, Permissions::from_mode(*mode)).unwrap();
            }
        }
    }

    pub fn get(&self, path: &str) -> Option<&Node> {
        self.0.get(path)
    }

    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The root counts.
    pub fn is_folder(&self, path: &str) -> bool {
        path.is_empty() || matches!(self.get(path), Some(Node::Folder(_)))
    }

    pub fn is_file(&self, path: &str) -> bool {
        matches!(self.get(path), Some(Node::File(..)))
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        let Some(Node::File(_, text)) = self.get(path) else {
            return None;
        };
        Some(text)
    }

    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// What is at a path and below it.
    pub fn at_or_below(&self, top: &str) -> Vec<String> {
        self.paths()
            .filter(|path| is_at_or_below(path, top))
            .cloned()
            .collect()
    }

    /// A file, with the folders that it needs.
    pub fn write(&mut self, path: &str, mode: u32, text: &str) {
        for folder in above(path) {
            self.0
                .entry(folder.to_owned())
                .or_insert(Node::Folder(0o755));
        }
        self.0
            .insert(path.to_owned(), Node::File(mode, text.to_owned()));
    }

    pub fn remove(&mut self, top: &str) {
        self.0.retain(|path, _| !is_at_or_below(path, top));
    }

    pub fn rename(&mut self, from: &str, to: &str) {
        for path in self.at_or_below(from) {
            let node = self.0.remove(&path).unwrap();
            self.0.insert(format!("{to}{}", &path[from.len()..]), node);
        }
    }

    /// Without folders in which there is nothing: git does not track them.
    pub fn without_empty_folders(mut self) -> Self {
        let full: BTreeSet<String> = self
            .0
            .iter()
            .filter(|(_, node)| !matches!(node, Node::Folder(_)))
            .flat_map(|(path, _)| above(path).map(str::to_owned))
            .collect();
        self.0
            .retain(|path, node| !matches!(node, Node::Folder(_)) || full.contains(path));
        self
    }
}
