//! Checks the two folders of the configuration: it comes with the repository, and the folders that it names
//! become writable to an agent.

use std::path::{Component, Path, PathBuf};

use anyhow::anyhow;
use code_commit_names::ours::{ABL, AGENT_CONFIG, PHASE_CONFIG, STATE};
use code_commit_settings::keys::DOT_ENV;
use code_commit_settings::phase::Config;

use crate::exit::Failure;
use crate::text;

/// The folder with the specs.
pub const SPECS: &str = ".abl/specs";
/// The user's description.
pub const PROJECT: &str = ".abl/project.md";
/// What no role may see besides the other role's folder, relative to the root: secrets, the harness's own
/// files, and the prompts of both.
pub(super) const HIDDEN: [&str; 8] = [
    DOT_ENV,
    AGENT_CONFIG,
    "prompts",
    STATE,
    ".abl/logs",
    ".abl/prompts",
    ".abl/state.json",
    PHASE_CONFIG,
];

/// A file's text; `None` if it does not exist. Symlinks are not followed and pipes not read: a role may have
/// planted one.
pub fn read(path: &Path) -> Result<Option<String>, Failure> {
    if path.is_symlink() {
        Ok(None)
    } else {
        text::read(path)
    }
}

/// Where the roles work: one real folder below the root for each role, neither of them the harness's. They
/// need not exist yet.
pub(super) struct Folders {
    pub(super) src: PathBuf,
    pub(super) tests: PathBuf,
}

impl Folders {
    /// Refuses folders outside the project, through symlinks, in the harness's own, or the same one for both.
    /// `root` has no symlinks.
    pub(super) fn find(root: &Path, config: &Config) -> Result<Self, Failure> {
        let src = place(root, "src", &config.src)?;
        let tests = place(root, "tests", &config.tests)?;
        if src == tests {
            let why = "directories.src and directories.tests are the same folder";
            return Err(refused(why));
        }
        if tests == root {
            let why = "directories.tests is the project itself, and the source with it";
            return Err(refused(why));
        }
        Ok(Self { src, tests })
    }
}

/// Refuses symlinks in place of the harness's own folders, since a repository may contain them. If one
/// pointed up, a role would see hidden files along with the specs; if one pointed outside, records would be
/// written there.
pub fn refuse_links(root: &Path) -> Result<(), Failure> {
    let mut own = [SPECS, ".abl/logs", ".abl/prompts"].into_iter();
    own.find_map(|folder| link_on_the_way(root, Path::new(folder)))
        .map_or(Ok(()), |link| {
            let why = anyhow!("{} is a link", link.display());
            let help = "put a folder there: specs and records are kept inside of the project";
            Err(Failure::refused(why, help))
        })
}

fn place(root: &Path, key: &str, folder: &str) -> Result<PathBuf, Failure> {
    let no = |why: &str| refused(&format!("directories.{key} is {folder:?}, which {why}"));
    let path = plain(Path::new(folder)).ok_or_else(|| no("is not a folder below the project"))?;
    if is_no_roles(&path) {
        return Err(no("belongs to no role"));
    }
    if let Some(link) = link_on_the_way(root, &path) {
        return Err(no(&format!("leads through the link {}", link.display())));
    }
    // Joining an empty path would append a `/` to the root.
    Ok(path
        .components()
        .fold(root.to_owned(), |at, part| at.join(part)))
}

/// Without `.`, which would hide the first component; `None` if it goes up or is absolute.
fn plain(path: &Path) -> Option<PathBuf> {
    let names = path.components().filter(|part| *part != Component::CurDir);
    names
        .map(|part| matches!(part, Component::Normal(_)).then_some(part))
        .collect()
}

/// By name alone, ignoring case, since some file systems do. Repositories at any depth belong to the harness.
fn is_no_roles(path: &Path) -> bool {
    let is = |part: Component<'_>, name: &str| part.as_os_str().eq_ignore_ascii_case(name);
    let is_within = |own: &str| {
        let mut parts = path.components();
        own.split('/')
            .all(|name| parts.next().is_some_and(|part| is(part, name)))
    };
    let is_in_repository = path.components().any(|part| is(part, ".git"));
    let is_all_of_it = is_within(ABL) && path.components().count() == 1;
    is_in_repository || is_all_of_it || HIDDEN.into_iter().chain([SPECS]).any(is_within)
}

/// The first symlink on the way from the root to the path, relative to the root.
fn link_on_the_way<'p>(root: &Path, path: &'p Path) -> Option<&'p Path> {
    let ways: Vec<&Path> = path.ancestors().collect();
    let mut below = ways.into_iter().rev().skip(1);
    below.find(|way| root.join(way).is_symlink())
}

fn refused(message: &str) -> Failure {
    Failure::refused(
        anyhow!("{PHASE_CONFIG}: {message}"),
        "name a folder of the project for each role",
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn find(root: &Path, src: &str, tests: &str) -> Result<(PathBuf, PathBuf), String> {
        let text = format!("directories: {{src: {src:?}, tests: {tests:?}}}\n");
        let config = Config::parse(Some(&text)).unwrap();
        let found = Folders::find(root, &config).map_err(|failure| format!("{failure:?}"))?;
        let below = |path: &Path| path.strip_prefix(root).unwrap().to_owned();
        Ok((below(&found.src), below(&found.tests)))
    }

    /// A project with some symlinks.
    fn project() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(root.join("real")).unwrap();
        for (target, link) in [
            ("/etc", "out"),
            ("real", "inner"),
            (".", "all"),
            ("nowhere", "dangling"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        (folder, root)
    }

    #[test]
    fn folders_of_the_project_are_taken_and_everything_else_is_refused() {
        let (_folder, root) = project();
        for (src, tests, found) in [
            ("src", ".abl/tests", ("src", ".abl/tests")),
            (".", "tests", ("", "tests")),
            ("real", "a/b/c", ("real", "a/b/c")),
            ("./src/./", "src//tests", ("src", "src/tests")),
            (".gitea", ".abl/specs-too", (".gitea", ".abl/specs-too")),
        ] {
            assert_eq!(
                find(&root, src, tests),
                Ok((found.0.into(), found.1.into())),
                "{src} {tests}"
            );
        }
        for (src, tests) in [
            ("..", "tests"),
            ("/etc", "tests"),
            ("src", "../other"),
            ("src", "real/../../other"),
            ("src", "./src"),
            ("src", "."),
            ("src", ".code-commit/x"),
        ] {
            assert!(find(&root, src, tests).is_err(), "{src} {tests}");
        }
    }

    #[test]
    fn no_spelling_of_what_is_the_harnesss_is_a_roles_folder() {
        let (_folder, root) = project();
        for own in [
            ".git",
            ".git/hooks",
            "a/.git/hooks",
            ".abl",
            ".abl/specs",
            ".abl/logs",
            "prompts",
            ".env",
        ] {
            for spelled in [
                own.to_owned(),
                format!("./{own}"),
                format!("{own}/."),
                format!("././{own}/x"),
                own.to_uppercase(),
            ] {
                let is_deeper_than_all = own == ".abl" && spelled.ends_with('x');
                assert_eq!(
                    find(&root, &spelled, "tests").is_ok(),
                    is_deeper_than_all,
                    "{spelled}"
                );
                assert_eq!(
                    find(&root, "src", &spelled).is_ok(),
                    is_deeper_than_all,
                    "{spelled}"
                );
            }
        }
    }

    #[test]
    fn no_link_is_on_the_way_to_a_roles_folder() {
        let (_folder, root) = project();
        for through in [
            "out",
            "out/deep",
            "inner",
            "all",
            "all/src",
            "./all",
            "all/.abl/logs",
            "dangling",
        ] {
            let why = find(&root, through, "tests").unwrap_err();
            assert!(why.contains("leads through the link"), "{through}: {why}");
        }
    }

    #[test]
    fn specs_and_records_are_not_kept_behind_links() {
        for (link, target) in [
            (".abl", "real"),
            (".abl/specs", ".."),
            (".abl/logs", "../.."),
            (".abl/prompts", "nowhere"),
        ] {
            let (_folder, root) = project();
            let at = root.join(link);
            refuse_links(&root).unwrap();
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            refuse_links(&root).unwrap();
            symlink(target, &at).unwrap();
            let why = format!("{:?}", refuse_links(&root).unwrap_err());
            assert!(why.contains(&format!("{link} is a link")), "{why}");
        }
    }
}
