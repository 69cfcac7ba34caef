//! A disk that has lost what was not synced: a program's calls, as strace lists them, tell what a power cut may leave of its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// What of the unsynced survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Nothing: neither a name whose folder was not synced nor a byte.
    Synced,
    /// Names, but no bytes.
    Names,
    /// Names, zeros instead of bytes, and the whole journal.
    Journal,
}

type Id = usize;

/// A file, a folder or a symlink.
#[derive(Default)]
struct Node {
    target: Option<PathBuf>,
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// The entries of a folder; no file has any.
    names: Option<BTreeMap<String, Id>>,
    synced_names: BTreeMap<String, Id>,
}

/// The files below a folder, by the calls that were made.
pub struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
}

/// The calls that tell it.
pub const CALLS: &str = "trace=openat,write,pwrite64,copy_file_range,ftruncate,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlinkat,\
                         unlink,unlinkat,rmdir,fsync,fdatasync,syncfs";

impl Disk {
    /// What is there before the program starts is on disk.
    pub fn of(root: &Path) -> Self {
        let mut disk = Self {
            root: root.to_owned(),
            nodes: Vec::new(),
        };
        disk.add(root);
        disk.sync();
        disk
    }

    fn add(&mut self, path: &Path) -> Id {
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        if path.is_dir() {
            let mut names = BTreeMap::new();
            for entry in crate::scenes::files::entries(path) {
                let name = crate::scenes::files::name(&entry);
                if !entry.is_symlink() && !is_gits(path, &name) {
                    names.insert(name, self.add(&entry));
                }
            }
            self.nodes[id].names = Some(names);
        } else {
            self.nodes[id].bytes = fs::read(path).unwrap();
        }
        id
    }

    fn sync(&mut self) {
        self.nodes.iter_mut().for_each(Node::sync);
    }

    fn find(&self, path: &Path) -> Option<Id> {
        let below = path.strip_prefix(&self.root).ok()?;
        below.iter().try_fold(0, |id, name| {
            self.nodes[id].names.as_ref()?.get(name.to_str()?).copied()
        })
    }

    fn folder(&mut self, path: &Path) -> Option<(&mut BTreeMap<String, Id>, String)> {
        let name = path.file_name()?.to_str()?.to_owned();
        if is_gits(path.parent()?, &name) {
            return None;
        }
        let id = self.find(path.parent()?)?;
        Some((self.nodes[id].names.as_mut()?, name))
    }

    fn put(&mut self, path: &Path, id: Id) {
        if let Some((folder, name)) = self.folder(path) {
            folder.insert(name, id);
        }
    }

    fn take(&mut self, path: &Path) -> Option<Id> {
        let (folder, name) = self.folder(path)?;
        folder.remove(&name)
    }

    fn make(&mut self, path: &Path, names: Option<BTreeMap<String, Id>>) {
        let id = self.nodes.len();
        self.nodes.push(Node {
            names,
            ..Node::default()
        });
        self.put(path, id);
    }

    /// Does what the calls in a log of `strace -y` did.
    pub fn replay(&mut self, log: &str) {
        let place = Regex::new(r#"(?:(?:\d+|AT_FDCWD)<([^>]*)>, )?"((?:[^"\\]|\\.)*)""#).unwrap();
        let open = Regex::new(r"\d+<([^>]*)>").unwrap();
        for line in log.lines() {
            let Some((call, rest)) = line.split_once('(') else {
                continue;
            };
            let Some((args, result)) = rest
                .rsplit_once(" = ")
                .filter(|(_, result)| !result.starts_with(['-', '?']))
            else {
                continue;
            };
            let paths: Vec<PathBuf> = place
                .captures_iter(args)
                .map(|found| {
                    let name = String::from_utf8(unescaped(&found[2])).unwrap_or_default();
                    Path::new(found.get(1).map_or("", |folder| folder.as_str())).join(name)
                })
                .collect();
            let files: Vec<PathBuf> = open
                .captures_iter(args)
                .map(|found| PathBuf::from(&found[1]))
                .collect();
            let number = |text: &str| {
                text.split([' ', '<'])
                    .next()
                    .unwrap()
                    .parse::<usize>()
                    .unwrap()
            };
            match call {
                "openat" if args.contains("O_CREAT") && self.find(&paths[0]).is_none() => {
                    self.make(&paths[0], None);
                }
                "openat" if args.contains("O_TRUNC") => self.write(&paths[0], std::vec::Vec::clear),
                "write" => {
                    let text = place
                        .captures(args)
                        .map(|found| unescaped(&found[2]))
                        .unwrap_or_default();
                    self.write(&files[0], |bytes| {
                        bytes.extend(&text[..number(result).min(text.len())]);
                    });
                }
                "copy_file_range" => {
                    let from = self
                        .find(&files[0])
                        .map(|id| self.nodes[id].bytes.clone())
                        .unwrap_or_default();
                    self.write(&files[1], |bytes| {
                        bytes.extend(
                            from.iter()
                                .skip(bytes.len())
                                .take(number(result))
                                .copied()
                                .collect::<Vec<_>>(),
                        );
                    });
                }
                "ftruncate" => {
                    let length = number(args.trim_end_matches(')').rsplit(", ").next().unwrap());
                    self.write(&files[0], |bytes| bytes.resize(length, 0));
                }
                "mkdir" | "mkdirat" => self.make(&paths[0], Some(BTreeMap::new())),
                "rename" | "renameat" | "renameat2" => {
                    if let Some(id) = self.take(&paths[0]) {
                        self.put(&paths[1], id);
                    }
                }
                "symlinkat" => {
                    self.make(&paths[1], None);
                    self.nodes.last_mut().unwrap().target = Some(paths[0].clone());
                }
                "link" | "linkat" => {
                    if let Some(id) = self.find(&paths[0]) {
                        self.put(&paths[1], id);
                    }
                }
                "unlink" | "unlinkat" | "rmdir" => drop(self.take(&paths[0])),
                "fsync" | "fdatasync" => {
                    if let Some(id) = self.find(&files[0]) {
                        self.nodes[id].sync();
                    }
                }
                "syncfs" => self.sync(),
                _ => {}
            }
        }
    }

    fn write(&mut self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(id) = self.find(path) {
            change(&mut self.nodes[id].bytes);
        }
    }

    /// The bytes that are certainly on disk of every file of this name.
    pub fn synced(&self, name: &str) -> Vec<u8> {
        let of = self.paths(0, Path::new(""), Left::Synced);
        of.into_iter()
            .filter(|(path, _)| path.ends_with(name))
            .flat_map(|(_, id)| self.nodes[id].synced.clone())
            .collect()
    }

    /// Every file and folder, with the folders before what is in them.
    fn paths(&self, id: Id, at: &Path, left: Left) -> Vec<(PathBuf, Id)> {
        let node = &self.nodes[id];
        let names = node.names.as_ref().map(|names| {
            if left == Left::Synced {
                &node.synced_names
            } else {
                names
            }
        });
        let mut found = vec![(at.to_owned(), id)];
        names
            .into_iter()
            .flatten()
            .for_each(|(name, id)| found.extend(self.paths(*id, &at.join(name), left)));
        found
    }

    /// Changes what is on disk to what a power cut may have left.
    pub fn cut(&self, left: Left) {
        let stash = self.root.with_extension("stash");
        fs::create_dir(&stash).unwrap();
        let kept = |id: Id| stash.join(id.to_string());
        let live = self.paths(0, Path::new(""), Left::Names);
        for (path, id) in &live {
            let path = self.root.join(path);
            if self.nodes[*id].target.is_some() {
                let _ = fs::remove_file(path);
            } else if self.nodes[*id].names.is_none() && path.is_file() {
                let _ = fs::hard_link(&path, kept(*id));
                fs::remove_file(path).unwrap();
            }
        }
        let cut = self.paths(0, Path::new(""), left);
        for (path, id) in live
            .iter()
            .rev()
            .filter(|(path, _)| !cut.iter().any(|(kept, _)| kept == path))
        {
            if self.nodes[*id].names.is_some() {
                let _ = fs::remove_dir(self.root.join(path));
            }
        }
        for (path, id) in cut {
            let (path, node) = (self.root.join(&path), &self.nodes[id]);
            if node.names.is_some() {
                fs::create_dir_all(&path).unwrap();
                continue;
            }
            if let Some(target) = &node.target {
                std::os::unix::fs::symlink(target, path).unwrap();
                continue;
            }
            let is_journal = left == Left::Journal && path.ends_with("events.jsonl");
            let mut bytes = if is_journal {
                node.bytes.clone()
            } else {
                node.synced.clone()
            };
            if left == Left::Journal {
                bytes.resize(node.bytes.len(), 0);
            }
            if !kept(id).exists() || fs::read(kept(id)).unwrap() != bytes {
                fs::write(kept(id), bytes).unwrap();
            }
            fs::hard_link(kept(id), path).unwrap();
        }
        fs::remove_dir_all(stash).unwrap();
    }
}

impl Node {
    fn sync(&mut self) {
        self.synced.clone_from(&self.bytes);
        self.synced_names = self.names.clone().unwrap_or_default();
    }
}

/// Git's own files are git's to sync.
fn is_gits(folder: &Path, name: &str) -> bool {
    folder.ends_with(".git") && name != "code-commit"
}

/// The bytes of a string as strace writes it.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digits = rest
            .iter()
            .take(3)
            .take_while(|byte| (b'0'..b'8').contains(byte))
            .count();
        let (code, used) = match rest[0] {
            b'n' => (b'\n', 1),
            b't' => (b'\t', 1),
            b'r' => (b'\r', 1),
            b'v' => (0x0b, 1),
            b'f' => (0x0c, 1),
            b'0'..=b'7' => (
                rest[..digits]
                    .iter()
                    .fold(0_u8, |code, digit| code.wrapping_mul(8) + (digit - b'0')),
                digits,
            ),
            other => (other, 1),
        };
        bytes.push(code);
        rest = &rest[used..];
    }
    bytes
}
