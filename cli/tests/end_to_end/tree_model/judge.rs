//! What stays of what a command did, by the rules that the documents state, computed from two trees alone.

use std::collections::BTreeSet;

use super::tree::{Node, Tree, above, is_at_or_below, join, parent};

/// Names that some program runs later; the product has many more.
pub const LATER: [&str; 8] = [
    ".envrc",
    "conftest.py",
    ".github/workflows/x.yml",
    ".cargo/config.toml",
    "build.rs",
    "evil.pth",
    ".vscode/settings.json",
    ".husky/pre-commit",
];
/// Names that only a person writes, in any folder.
pub const PERSONS: [&str; 3] = [".gitignore", ".gitmodules", ".cuggino.json"];

/// Configurations of a repository.
pub const HARMLESS: &str = "[core]\n\tbare = false\n";
pub const RUNS_A_PROGRAM: &str = "[core]\n\tfsmonitor = ./run\n";

/// Who works in a turn: the first in a phase, the others in a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Builder,
    Planning,
    Implementing,
    Reviewing,
}

/// A turn of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub role: Role,
    /// Whether the configuration protects anything.
    pub protects: bool,
}

/// What no role may change then: what is in two folders, and every `c.txt`.
const PROTECT: &str = "protect = ['/d/e/**', '/ign/deep/**', 'c.txt']\n";

impl Turn {
    /// The files that a run is configured by.
    pub fn settings(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let of_spec = [
            (".specs/a.md", "# A\n"),
            (".cuggino.json", "{\"maxIterations\":1}\n"),
        ];
        let of_spec = of_spec
            .into_iter()
            .filter(move |_| self.role != Role::Builder);
        of_spec.chain(self.protects.then_some(("code-commit.toml", PROTECT)))
    }

    /// A name that cannot be judged counts as protected.
    fn is_protected(self, path: &str) -> bool {
        let is_in = |folder: &str| path != folder && is_at_or_below(path, folder);
        self.protects
            && (is_in("d/e")
                || is_in("ign/deep")
                || path
                    .split('/')
                    .any(|name| ["c.txt", ".gitmodules"].contains(&name))
                || is_odd(path))
    }

    /// Whether what the role does at this path stays. No role leaves a configuration that git would go by, nor what makes
    /// a folder with one a bare repository: in these plans it cannot be read, and might name a program.
    pub fn may_leave(self, rules: &Rules, was: &Tree, now: &Tree, path: &str) -> bool {
        let is_bare = |folder: &str| {
            let part = path
                .get(folder.len() + 1..)
                .and_then(|rest| rest.split('/').next());
            let parts = ["HEAD", "config", "objects", "refs"];
            if is_ignored(folder) && now.text(&join(folder, "config")) == Some(HARMLESS) {
                return false;
            }
            let has = |tree: &Tree| parts.iter().all(|part| tree.has(&join(folder, part)));
            part.is_some_and(|part| parts.contains(&part))
                && folder.rsplit('/').next() != Some(".git")
                && has(now)
                && !has(was)
        };
        let is_harmless = is_ignored(path) && now.text(path) == Some(HARMLESS);
        (is_harmless || !path.ends_with(".git/config"))
            && !is_run_where_ignored(now, path)
            && !above(path).any(is_bare)
            && !has_set_id(now, path)
            && (self.may_touch(path) || !self.counts(rules, was, now, path))
    }

    fn may_touch(self, path: &str) -> bool {
        let is_ours =
            self.settings().any(|(file, _)| file == path) || is_at_or_below(path, ".specs");
        match self.role {
            Role::Builder => !self.is_protected(path),
            Role::Implementing => !self.is_protected(path) && !is_ours,
            Role::Planning | Role::Reviewing => false,
        }
    }

    /// Whether a file counts that is now at a path, or was: for git, or because somebody protects it, whether git ignores it or not.
    fn counts(self, rules: &Rules, was: &Tree, now: &Tree, path: &str) -> bool {
        let is_known = was.has(path) && !was.is_folder(path);
        // Git lists nothing of a repository that somebody makes. Among files that were there before, ignore rules count
        // like any file; in a new folder, they hide products.
        let is_new = |path: &str| now.has(path) && !was.has(path);
        let is_unknown_to_git = || {
            let mut old = was
                .paths()
                .filter(|old| !was.is_folder(old) && rules.accounts_for(old));
            above(path).any(|folder| {
                is_new(&join(folder, ".git/HEAD"))
                    || (now.text(&join(folder, ".gitignore")) == Some("*\n")
                        && !old.any(|old| is_at_or_below(old, folder)))
            })
        };
        let is_watched = self.role == Role::Builder || self.role == Role::Implementing;
        if path.split('/').any(|name| name == ".git") {
            return is_watched && self.is_protected(path);
        }
        let hides_files = || {
            let counts = |old: &str| rules.accounts_for(old) || old.contains('\u{fffd}');
            let mut old = was.paths().filter(|old| !was.is_folder(old) && counts(old));
            let is_in_ignored = above(path).any(|folder| !rules.accounts_for(folder));
            path.rsplit('/').next() == Some(".gitignore")
                && !is_in_ignored
                && old.any(|old| is_at_or_below(old, parent(path)))
        };
        (rules.accounts_for(path) && (is_known || !is_unknown_to_git()))
            || hides_files()
            || (is_watched && self.is_protected(path))
    }

    /// What stays of `now`, where `was` was there before the turn.
    pub fn judge(self, rules: &Rules, was: &Tree, now: &Tree) -> Expected {
        let all: BTreeSet<&String> = was.paths().chain(now.paths()).collect();
        let file =
            |tree: &Tree, path: &str| tree.get(path).filter(|_| !tree.is_folder(path)).cloned();
        let (mut tree, mut loose) = (now.clone(), BTreeSet::new());
        for path in all {
            let (old, new) = (file(was, path), file(now, path));
            if is_ignored(path)
                && let Some(rest) = rest_of_dangerous(was, now, path)
            {
                loose.extend(rest);
            }
            if old == new || self.may_leave(rules, was, now, path) {
                continue;
            }
            // What has come in the place of its folders, or of itself, goes.
            for folder in above(path).filter(|_| old.is_some()) {
                if !tree.is_folder(folder) {
                    // Where it gave way to something, it comes back with all that was in it; what git ignored there may.
                    for inside in was.at_or_below(folder) {
                        if !rules.accounts_for(&inside) {
                            loose.insert(inside);
                        } else if let Some(node) = was.get(&inside).filter(|_| now.has(folder)) {
                            tree.0.insert(inside, node.clone());
                        }
                    }
                    tree.0.insert(
                        folder.to_owned(),
                        was.get(folder).cloned().unwrap_or(Node::Folder(0o755)),
                    );
                }
            }
            match old {
                Some(old) => {
                    loose.extend(
                        tree.at_or_below(path)
                            .into_iter()
                            .filter(|path| !rules.accounts_for(path)),
                    );
                    tree.remove(path);
                    tree.0.insert(path.clone(), old);
                }
                None if !tree.is_folder(path) => {
                    let inside = was.at_or_below(path).into_iter();
                    loose.extend(inside.filter(|path| !rules.accounts_for(path)));
                    tree.remove(path);
                }
                None => {}
            }
        }
        Expected { tree, loose }
    }
}

/// Who may leave what.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The only files that a command of an order may leave.
    pub scope: Option<Vec<String>>,
    /// What git ignores is for the commands of an order to say, where by-products are kept.
    pub is_order: bool,
    /// Files that git tracks although it ignores them.
    pub forced: BTreeSet<String>,
}

/// What must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub tree: Tree,
    /// Ignored files beside a folder or a file that was put back whole: nobody accounts for them, so they may be there or not.
    pub loose: BTreeSet<String>,
}

impl Expected {
    pub fn exactly(tree: Tree) -> Self {
        Self {
            tree,
            loose: BTreeSet::new(),
        }
    }
}

/// What git ignores here: `*.o` and `/ign/`.
pub fn is_ignored(path: &str) -> bool {
    is_at_or_below(path, "ign")
        || path
            .split('/')
            .any(|name| name.strip_suffix(".o").is_some())
}

/// Whether git would run what a command has put there, in a folder that git ignores.
pub fn is_run_where_ignored(now: &Tree, path: &str) -> bool {
    is_ignored(path) && git_runs(now, path).is_some()
}

/// The repository for which git would run what is at this path, or what it names.
fn git_runs<'p>(now: &Tree, path: &'p str) -> Option<&'p str> {
    let git = match path.strip_suffix("/config") {
        Some(git) => Some(git).filter(|_| now.text(path) != Some(HARMLESS)),
        None => {
            (path.rsplit_once("/hooks/").map(|(git, _)| git)).filter(|_| !path.ends_with(".sample"))
        }
    };
    git.filter(|git| {
        ["HEAD", "objects", "refs"]
            .iter()
            .all(|part| now.has(&join(git, part)))
    })
}

/// Whether git ignores a file here that is no product: by its own name, and no folder above it.
pub fn is_apart(path: &str) -> bool {
    is_ignored(path) && !above(path).any(is_ignored) && !is_at_or_below(path, "ign")
}

/// What else is in a repository of which git would run what has come to this path. The danger goes, and the rest may stay.
fn rest_of_dangerous(was: &Tree, now: &Tree, path: &str) -> Option<Vec<String>> {
    let git = git_runs(now, path).filter(|_| was.get(path) != now.get(path))?;
    let mut rest = now.at_or_below(git);
    rest.retain(|other| git_runs(now, other).is_none());
    Some(rest)
}

/// It would run with the rights of whoever ran the command.
fn has_set_id(now: &Tree, path: &str) -> bool {
    matches!(now.get(path), Some(Node::File(mode, _)) if mode & 0o6000 != 0)
}

/// A character that no change may have in its path, or an end that other systems cut off.
fn is_odd(path: &str) -> bool {
    let is_bad =
        |char: char| char.is_control() || char == '\u{fffd}' || ":*?<>|\"\\".contains(char);
    path.chars().any(is_bad) || path.split('/').any(|name| name.ends_with(['.', ' ']))
}

/// Whether a path is one of these names, or below one that is a folder, at any level.
fn is_later(path: &str) -> bool {
    let tails = std::iter::once(path).chain(path.match_indices('/').map(|(at, _)| &path[at + 1..]));
    let folders = [".vscode", ".husky", ".github/workflows"];
    tails.into_iter().any(|tail| {
        LATER.contains(&tail)
            || tail.strip_suffix(".pth").is_some()
            || folders.iter().any(|folder| is_at_or_below(tail, folder))
    })
}

impl Rules {
    /// What stands in the place of a tracked file is accounted for like that file.
    pub fn accounts_for(&self, path: &str) -> bool {
        !is_ignored(path)
            || self.forced.contains(path)
            || above(path)
                .any(|above| self.forced.contains(above) && !is_ignored(&path[above.len() + 1..]))
    }

    /// Whether nothing at this path may be left by a command.
    fn refuses(&self, path: &str, is_new_folder: bool) -> bool {
        if is_odd(path) || path.split('/').any(|name| name == ".git") {
            return true;
        }
        match &self.scope {
            // A folder is nothing by itself.
            Some(allowed) => !is_new_folder && !allowed.iter().any(|file| file == path),
            None => {
                let is_persons = |name: &str| {
                    PERSONS.contains(&name) && !(self.is_order && name == ".gitignore")
                };
                is_later(path) || path.split('/').any(is_persons)
            }
        }
    }

    /// What stays of `now`, where `was` was there before.
    pub fn judge(&self, was: &Tree, now: &Tree) -> Expected {
        let all: BTreeSet<&String> = was.paths().chain(now.paths()).collect();
        let differing: Vec<&String> = all
            .iter()
            .copied()
            .filter(|path| self.accounts_for(path) && was.get(path) != now.get(path))
            .collect();
        let mut back: BTreeSet<&String> = BTreeSet::new();
        let mut whole: Vec<&String> = Vec::new();
        for path in &differing {
            if whole.iter().any(|top| is_at_or_below(path, top)) {
                continue;
            }
            let is_new_folder = now.is_folder(path) && !was.is_folder(path);
            if is_new_folder && self.goes_whole(was, now, path) {
                whole.push(path);
            } else if self.refuses(path, is_new_folder) || !is_plain(was, now, path) {
                back.insert(path);
            }
        }
        // A folder that gave way to something comes back with all that was in it, or not at all.
        for top in &all {
            let gave_way = was.is_folder(top) && now.has(top) && !now.is_folder(top);
            if gave_way && back.iter().any(|path| is_at_or_below(path, top)) {
                back.extend(differing.iter().filter(|path| is_at_or_below(path, top)));
            }
        }
        let mut tree = Tree::default();
        let mut loose = BTreeSet::new();
        for path in all {
            let is_in_whole = whole.iter().any(|top| is_at_or_below(path, top));
            let came_back = back.contains(path) || is_in_whole;
            let is_moved = |above: &str| {
                was.is_folder(above) != now.is_folder(above) || back.contains(&above.to_owned())
            };
            // Git accounts for what is in it.
            let holds_forced =
                was.is_folder(path) && self.forced.iter().any(|file| is_at_or_below(file, path));
            if !self.accounts_for(path)
                && (is_in_whole || holds_forced || above(path).any(is_moved))
            {
                loose.insert(path.clone());
            }
            let there = if came_back { was } else { now };
            if let Some(node) = there.get(path) {
                tree.0.insert(path.clone(), node.clone());
            }
        }
        for path in now.paths().filter(|path| !self.accounts_for(path)) {
            if let Some(rest) = rest_of_dangerous(was, now, path) {
                tree.remove(path);
                loose.extend(rest);
            }
        }
        let needed: Vec<String> = tree
            .paths()
            .flat_map(|path| above(path).map(str::to_owned))
            .collect();
        for folder in needed {
            if !tree.is_folder(&folder) {
                // Only an ignored one can be in the way: a file that git tracks in it is back.
                loose.insert(folder.clone());
                tree.0.insert(
                    folder.clone(),
                    was.get(&folder).cloned().unwrap_or(Node::Folder(0o755)),
                );
            }
        }
        Expected { tree, loose }
    }

    /// Whether a new folder does not stay, whatever is in it.
    fn goes_whole(&self, was: &Tree, now: &Tree, path: &str) -> bool {
        let has = |name: &str| now.has(&join(path, name));
        let Some(Node::Folder(mode)) = now.get(path) else {
            return false;
        };
        let is_closed = mode & 0o500 != 0o500;
        let is_repository = has(".git") || (has("HEAD") && has("objects") && has("refs"));
        // A cache of some tool, which git would not show.
        let ignores_itself = now.text(&join(path, ".gitignore")) == Some("*\n");
        let stood_for_a_link = was.has(path) && !was.is_file(path);
        // Where a file was that may not be changed, no folder stays.
        self.refuses(path, !was.has(path))
            || is_closed
            || is_repository
            || ignores_itself
            || stood_for_a_link
    }
}

/// Whether regular files without set-id bits, and folders, are all that there was and is.
fn is_plain(was: &Tree, now: &Tree, path: &str) -> bool {
    let is_plain = |node: &Node| match node {
        Node::Folder(_) => true,
        Node::File(mode, _) => mode & 0o6000 == 0,
        Node::Link(_) | Node::Other => false,
    };
    let has_other_mode = was.is_folder(path) && now.is_folder(path);
    was.get(path).is_none_or(is_plain) && now.get(path).is_none_or(is_plain) && !has_other_mode
}

/// The top folder or file that a path belongs to.
pub fn top(path: &str) -> &str {
    if parent(path).is_empty() {
        path
    } else {
        path.split('/').next().unwrap()
    }
}
