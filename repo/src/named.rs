//! Files of the tree that git's own configuration names: includes, hooks, filters, helpers, drivers.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use gix::config::source::Kind;

use crate::WorkTree;

/// Keys whose values are names of people and branches, addresses, numbers or switches: a branch may be called
/// like a folder. All other keys may name a file, today or in a later git.
const NO_FILES: [&str; 26] = [
    "author.email",
    "author.name",
    "branch.description",
    "branch.merge",
    "branch.pushremote",
    "branch.rebase",
    "branch.remote",
    "committer.email",
    "committer.name",
    "core.bare",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.repositoryformatversion",
    "core.symlinks",
    "remote.fetch",
    "remote.push",
    "remote.pushdefault",
    "remote.pushurl",
    "remote.url",
    "submodule.active",
    "submodule.branch",
    "submodule.url",
    "user.email",
    "user.name",
];

fn names_no_file(section: &str, key: &str) -> bool {
    NO_FILES.contains(&&*format!("{section}.{key}").to_ascii_lowercase())
}

/// Whether the configuration of the repository at `root` certainly names no file, judged by its lines alone:
/// opening the repository costs a run a millisecond each time. False if in doubt.
pub fn config_names_nothing(root: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(root.join(".git").join("config")) else { return false };
    let mut section = "";
    text.lines().map(str::trim).all(|line| {
        if let Some(header) = line.strip_prefix('[') {
            section = header.split([' ', ']']).next().unwrap_or_default();
            // A key may follow on the same line.
            return header.find(']') == Some(header.len() - 1);
        }
        let key = line.split('=').next().unwrap_or_default().trim();
        line.is_empty() || line.starts_with('#') || (names_no_file(section, key) && !line.ends_with('\\'))
    })
}

impl WorkTree {
    /// The files and folders below the root, relative to it, that any value of the repository's own
    /// configuration names. Git reads them or runs them, so whoever writes them runs code later.
    ///
    /// A value may be a path or a command line: each word is tried, relative to the top of the work tree and
    /// to the git directory.
    pub fn named_by_config(&self) -> Vec<PathBuf> {
        let config = self.repository.config_snapshot();
        let sections = config.plumbing().sections();
        let own = sections.filter(|section| section.meta().source.kind() == Kind::Repository);
        let values = own.flat_map(|section| {
            let name = section.header().name().to_string();
            let keys = section.value_names().filter(|key| !names_no_file(&name, key));
            let values = keys.flat_map(|key| section.values(&key)).map(|value| value.to_string());
            values.collect::<Vec<_>>()
        });
        let mut found = BTreeSet::new();
        for value in values {
            let words =
                value.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '&' | '|' | '='));
            let words = words.map(|word| word.trim_start_matches('!')).filter(|word| !word.is_empty());
            found.extend(
                words
                    .flat_map(|word| [self.top.join(word), self.git_dir().join(word)])
                    .filter_map(|path| self.below_root(&path)),
            );
        }
        found.into_iter().collect()
    }

    /// The path relative to the root, if it exists below the root and outside the root's `.git`.
    fn below_root(&self, path: &Path) -> Option<PathBuf> {
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(plain.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
            }
        }
        let below = plain.strip_prefix(&self.root).ok()?;
        let is_plain = below != Path::new("") && !below.starts_with(".git");
        (is_plain && plain.symlink_metadata().is_ok()).then(|| below.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_plain_configuration_is_told_without_opening_the_repository() {
        let scratch = Scratch::new();
        scratch.git(&["remote", "add", "origin", "https://host.invalid/x"]);
        assert!(config_names_nothing(scratch.path()));
        scratch.write(".git/config", "[core] hooksPath = hooks[1]\n");
        assert!(!config_names_nothing(scratch.path()));
        scratch.write(".git/config", "[core]\n\thooksPath = hooks\n");
        assert!(!config_names_nothing(scratch.path()));
        assert!(!config_names_nothing(&scratch.path().join("none")));
    }

    #[test]
    fn whatever_the_configuration_names_in_the_tree_is_found_with_what_is_included() {
        let scratch = Scratch::new();
        for file in
            ["tools/diff.sh", "hooks/pre-commit", "own.config", "second.config", "src/a", "with space"]
        {
            scratch.write(file, "");
        }
        scratch.write("own.config", "[core]\n\thooksPath = hooks\n[include]\n\tpath = second.config\n");
        scratch.write("second.config", "[filter \"x\"]\n\tclean = tools/diff.sh --fast\n");
        scratch.git(&["config", "include.path", "../own.config"]);
        scratch.git(&["config", "alias.x", "!sh ./src/a"]);
        scratch.git(&["config", "core.pager", "less"]);
        scratch.git(&["config", "user.name", "src team"]);
        assert!(!config_names_nothing(scratch.path()));
        let tree = WorkTree::at(scratch.path()).unwrap();
        let named: Vec<String> =
            tree.named_by_config().iter().map(|path| path.display().to_string()).collect();
        assert_eq!(named, ["hooks", "own.config", "second.config", "src/a", "tools/diff.sh"]);
    }

    /// One configuration with all of these keys, each with a file of its own; asserts that each file is found.
    /// A value may be invalid for its key: then nobody can work in such a repository. Returns how many were found.
    fn searched(scratch: &Scratch, keys: &[(usize, &str)]) -> usize {
        let lines = keys.iter().map(|(number, key)| {
            let (section, name) = key.rsplit_once('.').unwrap();
            let header = match section.split_once('.') {
                Some((section, _)) => format!("[{section} \"x\"]"),
                None => format!("[{section}]"),
            };
            format!("{header}\n\t{name} = tools/{number}\n")
        });
        scratch.write(".git/config", &lines.collect::<String>());
        let Ok(tree) = WorkTree::at(scratch.path()) else {
            let (first, second) = keys.split_at(keys.len() / 2);
            return if first.is_empty() { 0 } else { searched(scratch, first) + searched(scratch, second) };
        };
        let named = tree.named_by_config();
        for (number, key) in keys {
            assert!(named.contains(&PathBuf::from(format!("tools/{number}"))), "{key}");
        }
        assert!(!config_names_nothing(scratch.path()));
        keys.len()
    }

    /// Git's own list of all keys, of the version that is installed.
    #[test]
    fn every_key_that_git_documents_is_searched_for_files_but_for_names_and_addresses() {
        let scratch = Scratch::new();
        let documented = scratch.git(&["help", "--config"]);
        let short = |key: &str| {
            let (section, name) = key.rsplit_once('.').unwrap();
            format!("{}.{name}", section.split('.').next().unwrap()).to_ascii_lowercase()
        };
        let keys = documented.lines().filter(|key| key.contains('.') && !key.contains('*'));
        let (exempt, keys): (Vec<&str>, Vec<&str>) = keys.partition(|key| NO_FILES.contains(&&*short(key)));
        let exempt: BTreeSet<String> = exempt.into_iter().map(short).collect();
        assert_eq!(exempt.len(), NO_FILES.len(), "git documents only {exempt:?}");
        let keys: Vec<(usize, &str)> = keys.into_iter().enumerate().collect();
        keys.iter().for_each(|(number, _)| scratch.write(&format!("tools/{number}"), ""));
        let searched = searched(&scratch, &keys);
        assert!(searched > 500, "{searched} of {}", keys.len());
    }
}
