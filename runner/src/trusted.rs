//! Which files no command of a project can change, and the programs among them that the harness starts itself.
//!
//! `PATH` often begins with a folder of the project (an activated virtual environment, `node_modules/.bin`), and there
//! every command of the project may leave a `git`. Whether something can be trusted is decided by its place, not by
//! the time: what is outside of every writable place, at each symlink on the way, is the same before and after any command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::program::{DEFAULT_PATH, is_program};

/// The kernel follows no more symlinks.
const MOST_LINKS: usize = 40;

/// The places that commands of a project may change, without symlinks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changeable(Vec<PathBuf>);

impl Changeable {
    pub(crate) fn new<'p>(places: impl IntoIterator<Item = &'p Path>) -> Self {
        Self(places.into_iter().map(real).collect())
    }

    /// The path without symlinks, unless it, or a symlink that it leads through, is in one of these places.
    pub(crate) fn fixed(&self, path: &Path) -> Option<PathBuf> {
        self.resolved(path, &mut 0)
    }

    /// For one of the places itself: whether it is in another one.
    pub(crate) fn fixed_among_others(&self, place: &Path) -> Option<PathBuf> {
        let own = real(place);
        let others = self.0.iter().filter(|other| **other != own);
        Self(others.cloned().collect()).fixed(place)
    }

    fn resolved(&self, path: &Path, links: &mut usize) -> Option<PathBuf> {
        let mut parts = path.components();
        let last = parts.next_back()?;
        if last == Component::RootDir {
            return Some("/".into());
        }
        let mut here = self.resolved(parts.as_path(), links)?;
        let Component::Normal(name) = last else {
            here.pop();
            return Some(here);
        };
        let folder = here.clone();
        here.push(name);
        if self.0.iter().any(|place| here.starts_with(place)) {
            return None;
        }
        let Ok(target) = here.read_link() else {
            return Some(here);
        };
        *links += 1;
        (*links <= MOST_LINKS).then(|| self.resolved(&folder.join(target), links))?
    }
}

pub(crate) fn real(place: &Path) -> PathBuf {
    place.canonicalize().unwrap_or_else(|_| place.to_owned())
}

/// Where the harness finds the programs that it starts itself: in the folders of `PATH` that no command of the project can change.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Of `PATH`, as they are.
    folders: Vec<PathBuf>,
    changeable: Changeable,
}

/// There is no program that the harness could start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoProgram {
    /// It is nowhere.
    #[error("`{name}` is not on PATH")]
    Missing {
        /// How it is called.
        name: String,
    },
    /// The only one there is.
    #[error("{} is not started: commands of the project could have changed it", place.display())]
    Changeable {
        /// Where it is.
        place: PathBuf,
    },
}

impl NoProgram {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "install it, or add its folder to PATH",
            Self::Changeable { .. } => {
                "install it outside of the project and of what commands may write, in a folder of PATH"
            }
        }
    }
}

impl Programs {
    /// `path` is that of the user, `changeable` the project and whatever else the sandbox makes writable.
    pub fn new<'p>(path: Option<&OsStr>, changeable: impl IntoIterator<Item = &'p Path>) -> Self {
        let folders = std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))).collect();
        Self {
            folders,
            changeable: Changeable::new(changeable),
        }
    }

    /// Those that remain if commands may change these places, too.
    #[must_use]
    pub fn except<'p>(&self, changeable: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut rest = self.clone();
        rest.changeable.0.extend(changeable.into_iter().map(real));
        rest
    }

    /// The `PATH` for what the harness starts, which starts further programs: git starts `gpg`, `ssh-keygen` and the
    /// user's filters.
    pub fn path(&self) -> OsString {
        let fixed = |folder: &PathBuf| self.changeable.fixed(folder);
        let mut folders: Vec<PathBuf> = self.folders.iter().filter_map(fixed).collect();
        // What was split at colons holds none, but a symlink may lead to a folder whose name has one.
        folders.retain(|folder| !folder.as_os_str().as_bytes().contains(&b':'));
        std::env::join_paths(folders).unwrap_or_default()
    }

    /// The file to start for `name`: a bare name, or an absolute path.
    pub fn find(&self, name: impl AsRef<OsStr>) -> Result<PathBuf, NoProgram> {
        let name = name.as_ref();
        let at = |folder: &PathBuf| folder.join(name);
        let mut places: Vec<PathBuf> = if name.as_bytes().contains(&b'/') {
            vec![name.into()]
        } else {
            self.folders.iter().map(at).collect()
        };
        places.retain(|place| is_program(place));
        let Some(first) = places.first().cloned() else {
            let name = name.to_string_lossy().into_owned();
            return Err(NoProgram::Missing { name });
        };
        let is_fixed = |place: &PathBuf| self.changeable.fixed(place).is_some();
        let fixed = places.into_iter().find(is_fixed);
        fixed.ok_or(NoProgram::Changeable { place: first })
    }
}

/// The path of a system program. Never searched in a `PATH` that a project could set.
pub(crate) fn system_program(name: &str) -> Result<PathBuf, String> {
    let folders = OsStr::new("/usr/bin:/usr/local/bin:/bin:/run/current-system/sw/bin");
    Programs::new(Some(folders), [])
        .find(name)
        .map_err(|_| format!("{name} is not installed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// Programs at these places of a new folder.
    fn folder(programs: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in programs {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::File::create(&file).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    fn found(folder: &Path, path: &[&str], name: &str) -> String {
        let path = std::env::join_paths(path.iter().map(|one| folder.join(one))).unwrap();
        let programs = Programs::new(
            Some(&path),
            [folder.join("tree").as_path(), &folder.join("writable")],
        );
        let shown = programs
            .find(name)
            .map_or_else(|no| no.to_string(), |file| file.display().to_string());
        shown.replace(&folder.display().to_string(), "")
    }

    #[test]
    fn a_program_is_taken_only_from_where_no_command_can_change_it() {
        let folder = folder(&[
            "tree/.venv/bin/git",
            "tree/only",
            "writable/git",
            "bin/git",
            "other/git",
        ]);
        let at = |name: &str| folder.path().join(name);
        symlink(at("tree/.venv/bin"), at("to-tree")).unwrap();
        symlink(at("bin"), at("tree/out")).unwrap();
        fs::create_dir(at("links")).unwrap();
        symlink(at("tree/.venv/bin/git"), at("links/git")).unwrap();
        symlink("../tree/out/git", at("links/through")).unwrap();
        symlink("../links/../bin/git", at("links/good")).unwrap();
        let cases: [(&[&str], &str); 8] = [
            (&["tree/.venv/bin", "bin", "other"], "git"),
            (
                &["writable", "to-tree", "tree/out", "links", "other"],
                "git",
            ),
            (&["links/../tree/out", "links"], "git"),
            (&["links"], "through"),
            (&["links"], "good"),
            (&["tree"], "only"),
            (&["bin"], "missing"),
            (&["."], "git"),
        ];
        let table: String = cases
            .map(|(path, name)| format!("{}\n", found(folder.path(), path, name)))
            .concat();
        insta::assert_snapshot!(table, @"
        /bin/git
        /other/git
        /links/../tree/out/git is not started: commands of the project could have changed it
        /links/through is not started: commands of the project could have changed it
        /links/good
        /tree/only is not started: commands of the project could have changed it
        `missing` is not on PATH
        `git` is not on PATH
        ");
    }

    #[test]
    fn a_named_file_is_judged_like_one_of_path_and_a_relative_one_never_counts() {
        let folder = folder(&["tree/editor", "bin/editor"]);
        for (file, is_started) in [
            ("bin/editor", true),
            ("tree/editor", false),
            ("tree/../bin/editor", false),
        ] {
            let programs = Programs::new(None, [folder.path().join("tree").as_path()]);
            assert_eq!(
                programs.find(folder.path().join(file)).is_ok(),
                is_started,
                "{file}"
            );
        }
        assert!(
            Programs::new(Some(OsStr::new("bin:.:")), [])
                .find("Cargo.toml")
                .is_err()
        );
        assert!(Programs::new(None, []).find("./src/lib.rs").is_err());
    }

    #[test]
    fn the_path_for_what_git_starts_names_no_folder_of_the_project() {
        let folder = folder(&["tree/bin/gpg", "bin/gpg"]);
        symlink("tree/bin", folder.path().join("link")).unwrap();
        let path = ["tree/bin", "link", "bin", "none"].map(|name| folder.path().join(name));
        let path =
            std::env::join_paths(path.into_iter().chain(["relative".into(), "".into()])).unwrap();
        let programs = Programs::new(Some(&path), [folder.path().join("tree").as_path()]);
        let real = folder.path().canonicalize().unwrap();
        let expected = std::env::join_paths([real.join("bin"), real.join("none")]).unwrap();
        assert_eq!(programs.path(), expected);
    }

    #[test]
    fn links_that_lead_in_a_circle_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        symlink("b", folder.path().join("a")).unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        assert_eq!(Changeable::default().fixed(&folder.path().join("a")), None);
    }
}
