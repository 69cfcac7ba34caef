//! The program that sandboxes start: a small one that was installed with the one that uses this crate, or else that one itself.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::access::Backend;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The names by which the program knows that it was started as a helper.
pub(super) const OUTER: &str = "code-commit-sandbox";
pub(super) const FIRST: &str = "code-commit-sandbox-init";

/// Why there are no namespaces without it.
pub(super) const NONE: &str =
    "this program does not call `code_commit_runner::helper` when it starts";

/// Another program, which calls [`helper`](crate::helper), is started in place of this one: for tests, whose `main` is not
/// theirs. Only the first call counts.
pub fn helper_is(program: impl Into<PathBuf>) {
    PROGRAM.get_or_init(|| program.into());
}

pub(super) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// The small helper of a package, in a place of its own so that a security profile can name it.
const OF_PACKAGE: &str = "/usr/lib/code-commit/code-commit-sandbox";

/// The small helper if it belongs to this program, never what PATH finds; else this program itself.
pub(super) fn find() -> PathBuf {
    let own = std::env::current_exe().ok();
    own.and_then(|own| of(&own))
        .unwrap_or_else(|| "/proc/self/exe".into())
}

/// That of the package if the package brought this program, else the one beside it. Both programs and their folders have one owner,
/// and nobody else may write there.
fn of(own: &Path) -> Option<PathBuf> {
    let helper = if own.starts_with("/usr/bin") {
        OF_PACKAGE.into()
    } else {
        own.with_file_name(OUTER)
    };
    (owner_of(&helper)? == owner_of(own)?).then_some(helper)
}

/// Who owns a program and its folder; `None` if these differ, or if somebody else may write there.
fn owner_of(program: &Path) -> Option<u32> {
    let [program, folder] = [program, program.parent()?].map(fs::symlink_metadata);
    let (program, folder) = (program.ok()?, folder.ok()?);
    let is_own = |found: &fs::Metadata| {
        found.uid() == program.uid() && found.permissions().mode() & 0o022 == 0
    };
    (program.is_file() && is_own(&program) && is_own(&folder)).then(|| program.uid())
}

impl Backend {
    /// Whether a command can work in a view of the tree ([`Access::view`](crate::Access::view)).
    pub fn has_views(self) -> bool {
        program().is_some() && self == Self::Namespaces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_that_somebody_else_could_have_put_there_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let [own, helper] = ["code-commit", OUTER].map(|name| folder.path().join(name));
        let may = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::File::create(&own).unwrap();
        may(&own, 0o755);
        assert_eq!(of(&own), None, "there is none");
        fs::File::create(&helper).unwrap();
        may(&helper, 0o755);
        assert_eq!(of(&own).as_ref(), Some(&helper));
        for (path, mode) in [(&*helper, 0o775), (folder.path(), 0o757)] {
            may(path, mode);
            assert_eq!(of(&own), None, "{} {mode:o}", path.display());
            may(path, 0o755);
        }
        fs::remove_file(&helper).unwrap();
        std::os::unix::fs::symlink("/bin/true", &helper).unwrap();
        assert_eq!(of(&own), None, "a link");
    }
}
