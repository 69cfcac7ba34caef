//! What no model may write besides the protected names: the program that decides whether the work is done,
//! and the targets of protected names that are symlinks. Writing the target of a symlink `build.sh` would
//! change the build.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path};

use code_commit_names::{Binds, Writer};
use code_commit_repo::WorkTree;
use code_commit_settings::Settings;

/// A file of the project that no model may write.
pub(crate) struct Decider {
    /// Relative to the root.
    pub path: String,
    pub what: String,
    /// Whether the build has to write it, such as `Cargo.lock`.
    pub is_builds: bool,
}

/// All of them, as they are on disk now, by git's configuration as it was opened. A model cannot write files outside the
/// project.
pub(crate) fn find(root: &Path, git: Option<&WorkTree>, settings: &Settings) -> Vec<Decider> {
    let Ok(root) = fs::canonicalize(root) else {
        return Vec::new();
    };
    let rows = code_commit_names::protected(Binds::Commit).filter(|row| !row.is_folder());
    let names = rows
        .map(|row| (row.at_root(), row.writer() == Some(Writer::Build)))
        .collect::<Vec<_>>();
    let build = settings.build_command();
    let program = build.argv.first().filter(|program| program.contains('/'));
    // By its name even if it does not exist, and by its real path even if the name contains `..` or a
    // symlink.
    let places = program
        .into_iter()
        .flat_map(|program| [below(&root, program), end(&root, program)]);
    let new = places
        .flatten()
        .filter(|path| names.iter().all(|(name, _)| name != path));
    let what = || "the build decides whether the work is done".to_owned();
    let program = new.map(|path| Decider {
        path,
        what: what(),
        is_builds: false,
    });
    let links = names
        .iter()
        .filter(|(name, _)| root.join(name).is_symlink());
    let ends = links.filter_map(|(name, is_builds)| {
        let path = end(&root, name).filter(|path| path != name)?;
        Some(Decider {
            path,
            what: format!("{name} leads to it"),
            is_builds: *is_builds,
        })
    });
    let by_git = git.map(WorkTree::named_by_config).unwrap_or_default();
    let by_git = by_git
        .iter()
        .filter_map(|path| path.to_str().map(str::to_owned))
        .map(|path| Decider {
            path,
            what: "git's configuration names it: git reads or starts it".to_owned(),
            is_builds: false,
        });
    let mut known = HashSet::new();
    ends.chain(program)
        .chain(by_git)
        .filter(|decider| known.insert(decider.path.clone()))
        .collect()
}

/// The bytes of a build script to read, and the files named in it to protect, at most.
const MOST_READ: u64 = 256 << 10;
const MOST_NAMED: usize = 200;

/// The files of the project that the build command or its script names: they, too, decide whether the work is
/// done.
pub(crate) fn graders(root: &Path, settings: &Settings) -> Vec<String> {
    let Ok(root) = fs::canonicalize(root) else {
        return Vec::new();
    };
    let argv = &settings.build_command().argv;
    let script = argv.first().and_then(|program| end(&root, program));
    let text = script.as_ref().and_then(|script| {
        code_commit_dir::read(
            &root.join(script),
            MOST_READ,
            code_commit_dir::Links::Refused,
        )
        .ok()
        .flatten()
    });
    let text = text
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .unwrap_or_default();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '+' | '@');
    let words = argv
        .iter()
        .skip(1)
        .map(String::as_str)
        .chain(text.split(|c| !is_part(c)));
    let mut known = HashSet::new();
    let files = words.filter_map(|word| below(&root, word)).filter(|path| {
        Some(path) != script.as_ref()
            && root
                .join(path)
                .symlink_metadata()
                .is_ok_and(|found| found.is_file())
    });
    files
        .filter(|path| known.insert(path.clone()))
        .take(MOST_NAMED)
        .collect()
}

/// A program's name relative to the root, if it is obvious.
fn below(root: &Path, program: &str) -> Option<String> {
    let path = Path::new(program);
    let below = if path.is_absolute() {
        path.strip_prefix(root).ok()?
    } else {
        path
    };
    let names = below.components().filter(|part| *part != Component::CurDir);
    let names: Option<Vec<&str>> = names
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => None,
        })
        .collect();
    names.map(|names| names.join("/"))
}

/// The file of the project that a name resolves to, symlinks included.
fn end(root: &Path, name: &str) -> Option<String> {
    let end = fs::canonicalize(root.join(name))
        .ok()
        .filter(|end| end.is_file())?;
    end.strip_prefix(root).ok()?.to_str().map(str::to_owned)
}

/// A gitignore pattern that matches only this path.
pub(crate) fn literally(path: &str) -> String {
    let escaped = path.chars().flat_map(|c| {
        let escape = matches!(c, '\\' | '*' | '?' | '[' | ' ').then_some('\\');
        escape.into_iter().chain([c])
    });
    std::iter::once('/').chain(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_build_script_names_are_graders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        let script = format!("./a.sh 'b.sh';{}/c.sh d a.sh ../e.sh", root.display());
        for path in ["build.sh", "a.sh", "b.sh", "c.sh", "d/f.sh", "../e.sh"] {
            code_commit_dir::replace(&root.join(path), script.as_bytes()).unwrap();
        }
        let graders = graders(&root, &Settings::default());
        assert_eq!(graders, ["a.sh", "b.sh", "c.sh"]);
    }
}
