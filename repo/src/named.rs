//! Files of the tree that git's own configuration names: includes, hooks, filters, helpers, drivers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gix_config::source::Kind;

use crate::WorkTree;

/// Keys whose values are names of people and branches, addresses, numbers or switches: a branch may be called
/// like a folder. All other keys may name a file, today or in a later git.
const NO_FILES: [&str; 27] = [
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
    "safe.directory",
    "submodule.active",
    "submodule.branch",
    "submodule.url",
    "user.email",
    "user.name",
];

fn names_no_file(section: &str, key: &str) -> bool {
    NO_FILES.contains(&&*format!("{section}.{key}").to_ascii_lowercase())
}

/// Keys whose values are paths, even without a slash or a dot.
const PATHS: [&str; 4] = [
    "core.attributesfile",
    "core.hookspath",
    "include.path",
    "includeif.path",
];

/// Whether a configuration certainly names no file, judged by its lines alone. False if in doubt.
pub fn config_names_nothing(text: &str) -> bool {
    let mut section = "";
    text.lines().map(str::trim).all(|line| {
        if let Some(header) = line.strip_prefix('[') {
            section = header.split([' ', ']']).next().unwrap_or_default();
            // A key may follow on the same line.
            return header.find(']') == Some(header.len() - 1);
        }
        let key = line.split('=').next().unwrap_or_default().trim();
        line.is_empty()
            || line.starts_with('#')
            || (names_no_file(section, key) && !line.ends_with('\\'))
    })
}

impl WorkTree {
    /// The files and folders below the root, relative to it, that any value of git's configuration names, and
    /// those to which symlinks in the git directory lead. Git reads them or runs them, so whoever writes them
    /// runs code later. They need not exist yet.
    ///
    /// A value may be a path or a command line: each word is tried, relative to the top of the work tree, to the
    /// git directory and to the file that it is in. In the user's configuration and the system's, a word without a
    /// slash is a program or a name.
    pub fn named_by_config(&self) -> &[PathBuf] {
        self.known.named.get_or_init(|| self.find_named())
    }

    fn find_named(&self) -> Vec<PathBuf> {
        let mut found = BTreeSet::new();
        for section in self.config.sections() {
            let (name, meta) = (
                section.header().name().to_string().to_ascii_lowercase(),
                section.meta(),
            );
            let own = meta.source.kind() == Kind::Repository;
            let beside = meta
                .path
                .as_deref()
                .and_then(Path::parent)
                .unwrap_or(self.git_dir());
            let bases = [self.top.as_path(), self.git_dir(), beside];
            for key in section
                .value_names()
                .filter(|key| !names_no_file(&name, key))
            {
                let is_path = PATHS.contains(&&*format!("{name}.{}", key.to_ascii_lowercase()));
                for value in section.values(&key) {
                    self.add_words(&value.to_string(), bases, is_path, own, &mut found);
                }
            }
        }
        for part in ["config", "config.worktree", "hooks", "info/attributes"] {
            let common = self.common_dir.join(part);
            [common, self.git_dir().join(part)]
                .iter()
                .for_each(|part| self.add_way(part, &mut found));
        }
        found.into_iter().collect()
    }

    fn add_words(
        &self,
        value: &str,
        bases: [&Path; 3],
        is_path: bool,
        own: bool,
        found: &mut BTreeSet<PathBuf>,
    ) {
        let words = value
            .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '&' | '|' | '='));
        for word in words
            .map(|word| word.trim_start_matches('!'))
            .filter(|word| !word.is_empty())
        {
            let at_home = word
                .strip_prefix("~/")
                .or_else(|| word.strip_prefix("$HOME/"));
            if let Some(below) = at_home {
                let home = gix_path::env::home_dir();
                home.iter()
                    .for_each(|home| self.add_way(&home.join(below), found));
                continue;
            }
            let looks_like_one = is_path || word.contains('/') || (own && word.contains('.'));
            for path in bases.map(|base| base.join(word)) {
                if looks_like_one || (own && path.symlink_metadata().is_ok()) {
                    self.add_way(&path, found);
                }
            }
        }
    }

    /// Adds what a path leads to, and what a folder of links leads to, such as one of hooks.
    fn add_way(&self, path: &Path, found: &mut BTreeSet<PathBuf>) {
        self.add_steps(path, found);
        for entry in code_commit_dir::list(path).into_iter().flatten().flatten() {
            if entry
                .file_type()
                .is_ok_and(code_commit_dir::FileType::is_symlink)
            {
                self.add_steps(&entry.path(), found);
            }
        }
    }

    /// Adds the end of a path and each symlink on the way to it, if they are below the root and outside of
    /// git's own folders. The last names need not exist.
    fn add_steps(&self, path: &Path, found: &mut BTreeSet<PathBuf>) {
        let parts = |path: &Path| {
            path.components()
                .rev()
                .map(|part| part.as_os_str().to_owned())
                .collect()
        };
        // These have no symlinks on the way.
        let real = [self.top(), self.git_dir(), self.common_dir()].into_iter();
        let start = real
            .filter(|real| path.starts_with(real))
            .max_by_key(|real| real.as_os_str().len());
        let mut place = start.map(Path::to_owned).unwrap_or_default();
        let rest = path.strip_prefix(&place).unwrap_or(path);
        let (mut todo, mut links): (Vec<OsString>, _) = (parts(rest), 0);
        while let Some(name) = todo.pop() {
            if name == ".." {
                place.pop();
                continue;
            }
            // A root replaces what was before it.
            place.push(&name);
            let is_end = todo.is_empty();
            let target = std::fs::read_link(&place)
                .ok()
                .filter(|_| links < MOST_LINKS);
            if is_end || target.is_some() {
                let below = place.strip_prefix(&self.root).unwrap_or(Path::new(""));
                let is_gits = [self.git_dir(), self.common_dir()]
                    .iter()
                    .any(|git| place.starts_with(git));
                if below != Path::new("") && !below.starts_with(".git") && !is_gits {
                    found.insert(below.to_owned());
                }
            }
            if let Some(target) = target {
                links += 1;
                place.pop();
                todo.extend(parts(&target));
            }
        }
    }
}

/// As many as the kernel follows.
const MOST_LINKS: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scratch::Scratch;

    #[test]
    fn a_plain_configuration_is_told_by_its_lines() {
        let scratch = Scratch::new();
        scratch.git(&["remote", "add", "origin", "https://host.invalid/x"]);
        assert!(config_names_nothing(
            &std::fs::read_to_string(scratch.path().join(".git/config")).unwrap()
        ));
        for text in [
            "[core] hooksPath = hooks[1]\n",
            "[core]\n\thooksPath = hooks\n",
            "[core]\n\tbare = \\\nx",
        ] {
            assert!(!config_names_nothing(text), "{text}");
        }
    }

    fn named(scratch: &Scratch) -> Vec<String> {
        let tree = scratch.tree();
        tree.named_by_config()
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    #[test]
    fn whatever_the_configuration_names_in_the_tree_is_found_with_what_is_included() {
        let scratch = Scratch::new();
        for file in [
            "tools/diff.sh",
            "hooks/pre-commit",
            "own.config",
            "second.config",
            "src/a",
            "with space",
        ] {
            scratch.write(file, "");
        }
        scratch.write(
            "own.config",
            "[core]\n\thooksPath = hooks\n[include]\n\tpath = second.config\n",
        );
        scratch.write(
            "second.config",
            "[filter \"x\"]\n\tclean = tools/diff.sh --fast\n",
        );
        scratch.git(&["config", "include.path", "../own.config"]);
        scratch.git(&["config", "alias.x", "!sh ./src/a"]);
        scratch.git(&["config", "core.pager", "less"]);
        scratch.git(&["config", "user.name", "src team"]);
        assert_eq!(
            named(&scratch),
            [
                "hooks",
                "own.config",
                "second.config",
                "src/a",
                "tools/diff.sh"
            ]
        );
    }

    #[test]
    fn what_does_not_exist_yet_is_named_too() {
        let scratch = Scratch::new();
        scratch.git(&["config", "core.hooksPath", "githooks"]);
        scratch.git(&["config", "include.path", "../later.cfg"]);
        scratch.git(&["config", "core.fsmonitor", "tools/watch --all"]);
        scratch.git(&["config", "diff.pdf.textconv", "python3 conv.py"]);
        scratch.git(&["config", "push.default", "simple"]);
        assert_eq!(
            named(&scratch),
            ["conv.py", "githooks", "later.cfg", "tools/watch"]
        );
    }

    #[test]
    fn every_link_on_the_way_to_a_file_and_the_file_are_named() {
        let (scratch, beside) = (Scratch::new(), tempfile::tempdir().unwrap());
        let link = |target: &Path, name: &Path| std::os::unix::fs::symlink(target, name).unwrap();
        let at = |name: &str| scratch.path().join(name);
        scratch.write("real/hooks/readme", "");
        link(Path::new("real"), &at("short"));
        link(Path::new("../tools/x"), &at("real/hooks/pre-commit"));
        link(scratch.path(), &beside.path().join("project"));
        let way = beside
            .path()
            .join("project/short/hooks")
            .display()
            .to_string();
        scratch.git(&["config", "core.hooksPath", &way]);
        link(
            Path::new("../../tools/hook"),
            &at(".git/hooks/post-checkout"),
        );
        let all = [
            "real/hooks",
            "real/hooks/pre-commit",
            "real/tools/x",
            "short",
            "tools/hook",
        ];
        assert_eq!(named(&scratch), all);
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
            return if first.is_empty() {
                0
            } else {
                searched(scratch, first) + searched(scratch, second)
            };
        };
        let named = tree.named_by_config();
        for (number, key) in keys {
            assert!(
                named.contains(&PathBuf::from(format!("tools/{number}"))),
                "{key}"
            );
        }
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
        let keys = documented
            .lines()
            .filter(|key| key.contains('.') && !key.contains('*'));
        let (exempt, keys): (Vec<&str>, Vec<&str>) =
            keys.partition(|key| NO_FILES.contains(&&*short(key)));
        let exempt: BTreeSet<String> = exempt.into_iter().map(short).collect();
        assert_eq!(
            exempt.len(),
            NO_FILES.len(),
            "git documents only {exempt:?}"
        );
        let keys: Vec<(usize, &str)> = keys.into_iter().enumerate().collect();
        keys.iter()
            .for_each(|(number, _)| scratch.write(&format!("tools/{number}"), ""));
        let searched = searched(&scratch, &keys);
        assert!(searched > 500, "{searched} of {}", keys.len());
    }
}
