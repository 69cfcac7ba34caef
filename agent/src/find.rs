//! Finds a CLI's program, and the files that it needs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The CLIs that can be driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Claude Code, `claude`.
    Claude,
    /// Gemini CLI, `gemini`.
    Gemini,
    /// Codex, `codex`.
    Codex,
}

impl Kind {
    /// The program's name in `PATH`.
    pub fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::Codex => "codex",
        }
    }

    /// The product's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Gemini => "Gemini CLI",
            Self::Codex => "Codex",
        }
    }

    /// The environment variable with its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Claude => "ANTHROPIC_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
            Self::Codex => "CODEX_API_KEY",
        }
    }

    /// How to install it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Claude => "install it with: npm install -g @anthropic-ai/claude-code",
            Self::Gemini => "install it with: npm install -g @google/gemini-cli",
            Self::Codex => "install it with: npm install -g @openai/codex",
        }
    }
}

/// An installed CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Which one.
    pub kind: Kind,
    /// The program itself, with all symlinks resolved.
    pub program: PathBuf,
    /// The folder that must be visible for it to run: the package that contains it, or its own
    /// folder.
    pub installation: PathBuf,
    /// Further folders that must be visible: platform packages, if npm puts the program itself into
    /// one of them.
    pub beside: Vec<PathBuf>,
    /// The version in its package; `None` for a program without a package.
    pub version: Option<String>,
}

/// The CLI is not installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} (`{}`) is not on PATH", kind.name(), kind.program())]
pub struct NotInstalled {
    /// Which one.
    pub kind: Kind,
}

/// Searches the folders of `path`, the value of `PATH`, for the CLI. Starts nothing.
pub fn find(kind: Kind, path: Option<&OsStr>) -> Result<Installed, NotInstalled> {
    let folders = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    folders
        .into_iter()
        .filter(|folder| folder.is_absolute())
        .find_map(|folder| Installed::at(kind, &folder.join(kind.program())))
        .ok_or(NotInstalled { kind })
}

impl Installed {
    /// The program at `path`, if it exists and is executable.
    pub fn at(kind: Kind, path: &Path) -> Option<Self> {
        let program = path.canonicalize().ok()?;
        let data = fs::metadata(&program).ok()?;
        if !data.is_file() || data.permissions().mode() & 0o111 == 0 {
            return None;
        }
        let package = program.ancestors().skip(1).find(|folder| is_package(folder));
        let installation = package.or(program.parent())?.to_owned();
        let version = package.and_then(version_of);
        let beside = package.map(packages_beside).unwrap_or_default();
        Some(Self { kind, program, installation, beside, version })
    }
}

/// Whether npm unpacked the folder: it has a manifest and is below `node_modules`.
fn is_package(folder: &Path) -> bool {
    folder.join("package.json").is_file()
        && folder.ancestors().skip(1).take(2).any(|above| above.ends_with("node_modules"))
}

/// Sibling packages whose name begins with the package's name and a `-`: `@openai/codex-linux-x64`
/// beside `@openai/codex`. A symlink to a package elsewhere counts, as with pnpm; a symlink to
/// anything else opens nothing, wherever it points.
fn packages_beside(package: &Path) -> Vec<PathBuf> {
    let Some((scope, name)) = package.parent().zip(package.file_name()) else { return Vec::new() };
    let begins_like_it = |path: &PathBuf| {
        let rest = path.file_name().and_then(|other| other.as_bytes().strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.starts_with(b"-"))
    };
    let entries = fs::read_dir(scope).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_real = |path: &PathBuf| path.canonicalize().is_ok_and(|real| is_package(&real));
    let mut beside: Vec<PathBuf> = entries.filter(begins_like_it).filter(is_real).collect();
    beside.sort();
    beside
}

fn version_of(package: &Path) -> Option<String> {
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(package.join("package.json")).ok()?).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[expect(clippy::disallowed_methods, reason = "a test makes its files")]
    fn manifest(package: &Path) {
        fs::create_dir_all(package).unwrap();
        fs::write(package.join("package.json"), r#"{"version":"0.61.0"}"#).unwrap();
    }

    fn program(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_package_that_holds_the_program_is_its_installation() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let package = root.join("lib/node_modules/@google/gemini-cli");
        program(&package.join("bundle/gemini.js"), 0o755);
        manifest(&package);
        fs::create_dir(root.join("bin")).unwrap();
        symlink(package.join("bundle/gemini.js"), root.join("bin/gemini")).unwrap();
        let found = find(Kind::Gemini, Some(root.join("bin").as_os_str())).unwrap();
        assert_eq!(found.installation, package);
        assert_eq!(found.version.as_deref(), Some("0.61.0"));
    }

    #[test]
    fn the_packages_of_platforms_beside_a_package_are_shown_and_nothing_else_there() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let scope = root.join("node_modules/@openai");
        program(&scope.join("codex/bin/codex.js"), 0o755);
        let elsewhere = root.join("node_modules/.pnpm/codex/node_modules/@openai/codex");
        let packages =
            ["codex", "codex-linux-x64", "codexes-linux-x64", "agents"].map(|name| scope.join(name));
        packages.iter().chain([&elsewhere, &root.join("mine")]).for_each(|folder| manifest(folder));
        fs::create_dir(scope.join("codex-no-package")).unwrap();
        symlink(&elsewhere, scope.join("codex-linux-arm64")).unwrap();
        for to in ["../../mine", "../..", "/"] {
            symlink(to, scope.join(format!("codex-to-{}", to.replace('/', "_")))).unwrap();
        }
        let found = Installed::at(Kind::Codex, &scope.join("codex/bin/codex.js")).unwrap();
        assert_eq!(found.installation, scope.join("codex"));
        assert_eq!(found.beside, ["codex-linux-arm64", "codex-linux-x64"].map(|name| scope.join(name)));
    }

    #[test]
    fn a_single_program_shows_its_folder_and_never_the_one_above() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        program(&root.join("share/claude/2.1.0"), 0o755);
        fs::create_dir(root.join("bin")).unwrap();
        symlink(root.join("share/claude/2.1.0"), root.join("bin/claude")).unwrap();
        let found = find(Kind::Claude, Some(root.join("bin").as_os_str())).unwrap();
        assert_eq!((found.installation, found.version), (root.join("share/claude"), None));
    }

    #[test]
    fn a_file_that_cannot_be_started_and_a_relative_folder_are_passed_over() {
        let root = tempfile::tempdir().unwrap();
        program(&root.path().join("one/codex"), 0o644);
        program(&root.path().join("two/codex"), 0o755);
        let path = std::env::join_paths([Path::new("bin"), &root.path().join("one")]).unwrap();
        assert_eq!(find(Kind::Codex, Some(&path)), Err(NotInstalled { kind: Kind::Codex }));
        let path = std::env::join_paths([root.path().join("one"), root.path().join("two")]).unwrap();
        assert!(find(Kind::Codex, Some(&path)).is_ok());
    }
}
