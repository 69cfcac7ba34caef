//! Whether the two folders of the configuration may be the roles' own: a repository brings that file along, and what it names there
//! becomes writable to an agent.

use std::path::{Component, Path, PathBuf};

use anyhow::anyhow;

use crate::commands::phase::config::{self, Config};
use crate::commands::phase::project::{ABL, SPECS};
use crate::commands::phase::walls::HIDDEN;
use crate::exit::Failure;

/// Refuses folders outside the project, in the harness's own, or the same one for both; and a link in the place of the harness's own.
pub fn check(root: &Path, config: &Config) -> Result<(), Failure> {
    if inside(root, &Path::new(ABL).join("logs")).is_none() {
        let why = anyhow!("{ABL}/logs leads out of the project");
        return Err(Failure::refused(why, "remove the link: records are kept inside of the project"));
    }
    let (src, tests) = (place(root, "src", &config.src)?, place(root, "tests", &config.tests)?);
    if src == tests {
        return Err(refused("directories.src and directories.tests are the same folder"));
    }
    if tests == root.canonicalize().unwrap_or_else(|_| root.to_owned()) {
        return Err(refused("directories.tests is the project itself, and the source with it"));
    }
    Ok(())
}

/// Where the folder really is, or will be.
fn place(root: &Path, key: &str, folder: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(folder);
    if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(refused(&format!(
            "directories.{key} is {folder:?}, which is not a folder below the project"
        )));
    }
    let not_for_roles = HIDDEN.iter().copied().chain([".git", SPECS]);
    if not_for_roles.into_iter().any(|own| path.starts_with(own)) {
        return Err(refused(&format!("directories.{key} is {folder:?}, which is no role's")));
    }
    inside(root, path)
        .ok_or_else(|| refused(&format!("directories.{key} is {folder:?}, which leads out of the project")))
}

/// Where a path below the root really is, or will be; none where a link leads out.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let top = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let path = root.join(path);
    // The part that is there already decides where a link leads.
    let there = path.ancestors().find(|part| part.symlink_metadata().is_ok()).unwrap_or(root);
    let real = there.canonicalize().unwrap_or_default();
    real.starts_with(&top).then(|| real.join(path.strip_prefix(there).unwrap_or(Path::new(""))))
}

fn refused(message: &str) -> Failure {
    Failure::refused(anyhow!("{}: {message}", config::FILE), "name a folder of the project for each role")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn check_folders(root: &Path, src: &str, tests: &str) -> Option<String> {
        let text = format!("directories: {{src: {src:?}, tests: {tests:?}}}\n");
        let config = Config::parse(Some(&text)).unwrap();
        check(root, &config).err().map(|failure| format!("{failure:?}"))
    }

    #[test]
    fn folders_of_the_project_are_taken_and_everything_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        std::fs::create_dir_all(root.join("real")).unwrap();
        symlink("/etc", root.join("out")).unwrap();
        symlink("real", root.join("inner")).unwrap();
        for (src, tests) in
            [("src", ".abl/tests"), (".", "tests"), ("inner", "a/b/c"), ("./src", "src/tests")]
        {
            assert_eq!(check_folders(&root, src, tests), None, "{src} {tests}");
        }
        for (src, tests) in [
            ("..", "tests"),
            ("/etc", "tests"),
            ("src", "../other"),
            ("out", "tests"),
            ("out/deep", "tests"),
            ("src", "./src"),
            ("inner", "real"),
            ("src", "."),
            (".git/x", "tests"),
            (".abl/specs", "tests"),
            ("src", ".code-commit/x"),
        ] {
            assert!(check_folders(&root, src, tests).is_some(), "{src} {tests}");
        }
    }

    #[test]
    fn records_are_not_kept_behind_a_link_that_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        std::fs::create_dir_all(root.join(ABL)).unwrap();
        assert_eq!(check_folders(&root, "src", "tests"), None);
        symlink("../..", root.join(ABL).join("logs")).unwrap();
        let refusal = check_folders(&root, "src", "tests").unwrap();
        assert!(refusal.contains(".abl/logs leads out of the project"), "{refusal}");
    }
}
