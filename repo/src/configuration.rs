//! Git's configuration, as it was when the work tree was opened.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::BString;
use gix_config::file::Metadata;
use gix_config::file::includes;
use gix_config::file::includes::conditional;
use gix_config::file::init::Options;
use gix_config::path::interpolate::Context;
use gix_config::source::Kind;
use gix_config::{File, Source};
use gix_error::{bail, validation};
use gix_path::env::{home_dir, var, xdg_config};
use gix_ref::file::Store;

use crate::{RepoError, WorkTree};

/// Which git configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Configuration {
    /// That of the system, the user and the repository, like git.
    All,
    /// Only that of the repository, so that tests do not depend on the user's files.
    RepositoryOnly,
}

/// Reads it for a repository, with the kind of hash that names its objects.
pub(crate) fn read(
    git_dir: &Path,
    common_dir: &Path,
    which: Configuration,
) -> gix_error::Result<(File, gix_hash::Kind)> {
    let users = [Source::System, Source::Git, Source::User].into_iter();
    let users = users.filter(|_| which == Configuration::All);
    let users = users.filter_map(|source| Some((source, source.storage_location(&mut variable)?)));
    let own = (Source::Local, common_dir.join("config"));
    let mut config = files(users.chain([own]))?;
    if own_boolean(&config, "extensions.worktreeConfig") == Some(true) {
        let of_tree = (Source::Worktree, git_dir.join("config.worktree"));
        config.append(files([of_tree])?)?;
    }
    let hash = object_hash(&config)?;
    if which == Configuration::RepositoryOnly {
        return Ok((config, hash));
    }
    let head = references(git_dir, common_dir, hash).find("HEAD").ok();
    let branch_name = head.as_ref().and_then(|head| head.target.try_name());
    let home = home_dir();
    let condition = conditional::Context {
        git_dir: Some(git_dir),
        branch_name,
    };
    let options = Options {
        includes: includes::Options::follow(interpolation(home.as_deref()), condition),
        ..Options::default()
    };
    config.resolve_includes(options)?;
    config.append(File::from_env(options)?.unwrap_or_default())?;
    Ok((config, hash))
}

/// Without what they include. One that cannot be read counts as empty.
fn files(places: impl IntoIterator<Item = (Source, PathBuf)>) -> gix_error::Result<File> {
    let mut config = File::default();
    for (source, path) in places {
        let text = fs::read(&path).unwrap_or_default();
        let part = Metadata::from(source).at(path);
        let file = File::from_bytes_no_includes(&text, part, Options::default())?;
        config.append(file)?;
    }
    Ok(config)
}

/// Says where the user's configuration is, but not `GIT_*`: those of a caller such as a hook refer to another repository.
fn variable(name: &str) -> Option<OsString> {
    var(name).filter(|_| !name.starts_with("GIT_"))
}

fn interpolation(home_dir: Option<&Path>) -> Context<'_> {
    Context {
        home_dir,
        ..Context::default()
    }
}

/// Whether a part of the configuration is in the files of the repository itself, not in what they include.
fn is_own(part: &Metadata) -> bool {
    part.source.kind() == Kind::Repository && part.level == 0
}

pub(crate) fn own_boolean(config: &File, key: &str) -> Option<bool> {
    config.boolean_filter(key, is_own).ok().flatten()
}

fn object_hash(config: &File) -> gix_error::Result<gix_hash::Kind> {
    let version = config.integer_filter("core.repositoryFormatVersion", is_own)?;
    let format = config.string_filter("extensions.objectFormat", is_own);
    let format = format.map_or_else(|| "sha1".to_owned(), |format| format.to_string());
    match (version.unwrap_or_default(), format.parse()) {
        (0, Ok(hash @ gix_hash::Kind::Sha1)) | (1, Ok(hash)) => Ok(hash),
        (version, _) => bail!(validation(format!(
            "format version {version} with {format} objects is not supported: only versions 0 and 1 are, and sha256 needs version 1"
        ))),
    }
}

pub(crate) fn references(git_dir: &Path, common_dir: &Path, hash: gix_hash::Kind) -> Store {
    Store::for_linked_worktree(git_dir.to_owned(), common_dir.to_owned(), hash)
}

/// Whether `safe.directory` of the user or of the system lists a folder. An empty value clears the list.
pub(crate) fn is_safe(config: &File, folder: &Path) -> bool {
    let home = home_dir();
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let names_it = |value: BString| {
        let path = gix_config::Path::from(value).interpolate(interpolation(home.as_deref()));
        path.is_ok_and(|path| match path.parent() {
            _ if !path.is_absolute() => false,
            Some(above) if path.ends_with("*") => folder.starts_with(real(above)),
            _ => real(&path) == folder,
        })
    };
    let is_protected = |part: &Metadata| matches!(part.source.kind(), Kind::System | Kind::Global);
    let listed = config.strings_filter("safe.directory", is_protected);
    let listed = listed.unwrap_or_default().into_iter();
    listed.fold(false, |is_safe, value| {
        !value.is_empty() && (is_safe || value == "*" || names_it(value))
    })
}

impl WorkTree {
    /// Git's configuration from all its files, as it was read.
    pub fn configuration(&self) -> Vec<u8> {
        self.config.to_bstring().into()
    }

    /// Whether a setting such as `core.ignoreCase` is on.
    pub fn is_set(&self, key: &str) -> bool {
        matches!(self.config.boolean(key), Ok(Some(true)))
    }

    /// The file of the user's that this setting names, such as `core.excludesFile`; without one, the file of this name in
    /// git's folder of the user's configuration.
    pub fn users_file(&self, key: &str, name: &str) -> Result<Option<PathBuf>, RepoError> {
        let home = home_dir();
        match self.config.path(key) {
            Some(path) if path.is_empty() => Ok(None),
            Some(path) => path
                .interpolate(interpolation(home.as_deref()))
                // Git reads a relative one from the top, where it works.
                .map(|path| Some(self.top.join(path)))
                .map_err(|error| self.git_error("read the configuration", &error)),
            None if self.which == Configuration::RepositoryOnly => Ok(None),
            None => Ok(xdg_config(name, &mut variable)),
        }
    }

    /// Where `core.worktree` of this repository puts the work tree. Git is started such that it does not count.
    pub fn configured_top(&self) -> Option<PathBuf> {
        let of_git_dir = |part: &Metadata| {
            let beside = part.path.as_deref().and_then(Path::parent);
            let beside = beside.and_then(|beside| fs::canonicalize(beside).ok());
            is_own(part) && beside.as_ref() == Some(&self.git_dir)
        };
        let set = self.config.string_filter("core.worktree", of_git_dir)?;
        Some(self.git_dir.join(set.to_string()))
    }

    /// Whether the repository's own configuration names filters. They do not run, so files that go
    /// through them look changed.
    pub fn has_own_filters(&self) -> bool {
        !self.own_filters().is_empty()
    }

    pub(crate) fn own_filters(&self) -> Vec<BString> {
        let filters = self.config.sections_by_name("filter");
        let filters = filters.into_iter().flatten();
        let own = filters.filter(|section| section.meta().source.kind() == Kind::Repository);
        own.filter_map(|section| section.header().subsection_name().map(ToOwned::to_owned))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scratch::Scratch;

    #[test]
    fn a_folder_is_safe_if_the_user_lists_it_or_a_folder_above_it() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().canonicalize().unwrap();
        let above = folder.parent().unwrap().display();
        let own = folder.display();
        let listed = |source: Source, values: &[String]| {
            let lines = values.iter().map(|value| format!("directory = {value}\n"));
            let text = format!("[safe]\n{}", lines.collect::<String>());
            let (part, options) = (Metadata::from(source), Options::default());
            let config = File::from_bytes_no_includes(text.as_bytes(), part, options);
            is_safe(&config.unwrap(), &folder)
        };
        for (values, expected) in [
            (vec![own.to_string()], true),
            (vec![format!("{above}/*")], true),
            (vec!["*".to_owned()], true),
            (vec![own.to_string(), String::new()], false),
            (vec![String::new(), own.to_string()], true),
            (vec![above.to_string()], false),
            (vec![format!("{own}/other")], false),
            (vec![".".to_owned()], false),
        ] {
            assert_eq!(listed(Source::User, &values), expected, "{values:?}");
            assert_eq!(listed(Source::System, &values), expected, "{values:?}");
            assert!(!listed(Source::Local, &values), "the repository's own");
        }
    }

    #[test]
    fn what_is_included_for_a_git_directory_or_a_branch_counts_only_there() {
        let scratch = Scratch::with(&[("file", "x")]);
        scratch.git(&["worktree", "add", "-q", "-b", "topic", "linked"]);
        let set = |condition: &str, key: &str| {
            scratch.write(
                &format!(".git/{key}.config"),
                &format!("[test]\n{key} = true\n"),
            );
            let name = format!("includeIf.{condition}.path");
            scratch.git(&["config", &name, &format!("{key}.config")]);
        };
        set("gitdir:**/worktrees/linked", "linked");
        set("gitdir:.git", "main");
        set("onbranch:topic", "topic");
        scratch.git(&["config", "include.path", "none.config"]);
        let is_set = |root: &str| {
            let tree = WorkTree::at(&scratch.path().join(root)).unwrap();
            ["linked", "main", "topic"].map(|key| tree.is_set(&format!("test.{key}")))
        };
        for root in ["", "linked"] {
            let git = |key: &str| {
                let of = scratch.path().join(root).display().to_string();
                let asked = [
                    "-C",
                    &of,
                    "config",
                    "--default",
                    "false",
                    &format!("test.{key}"),
                ];
                scratch.git(&asked).trim() == "true"
            };
            assert_eq!(is_set(root), ["linked", "main", "topic"].map(git), "{root}");
        }
        assert_eq!(is_set("linked"), [true, false, true]);
    }

    #[test]
    fn a_work_tree_with_a_configuration_of_its_own_reads_it() {
        let scratch = Scratch::with(&[("file", "x")]);
        scratch.git(&["worktree", "add", "-q", "linked"]);
        scratch.git(&["config", "extensions.worktreeConfig", "true"]);
        scratch.git(&["config", "--worktree", "test.main", "true"]);
        let is_set = |root: &str| {
            let tree = WorkTree::at(&scratch.path().join(root)).unwrap();
            tree.is_set("test.main")
        };
        assert_eq!((is_set(""), is_set("linked")), (true, false));
    }
}
