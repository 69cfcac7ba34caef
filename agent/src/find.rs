//! Finds a CLI's program, and the files that it needs.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use code_commit_runner::{NoProgram, Programs};
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
    /// What starts the program if its first line has `env` look that up; otherwise empty.
    pub interpreter: Vec<OsString>,
    /// The version in its package; `None` for a program without a package.
    pub version: Option<String>,
}

/// The CLI is not installed, or only where commands of the project can change it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}: {why}", kind.name())]
pub struct NotInstalled {
    /// Which one.
    pub kind: Kind,
    /// What there is.
    pub why: NoProgram,
}

impl NotInstalled {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        if matches!(self.why, NoProgram::Missing { .. }) {
            self.kind.hint()
        } else {
            self.why.hint()
        }
    }
}

/// Searches for the CLI. Starts nothing.
pub fn find(kind: Kind, programs: &Programs) -> Result<Installed, NotInstalled> {
    let not = |why| NotInstalled { kind, why };
    let found = programs.find(kind.program()).map_err(not)?;
    let gone = || {
        not(NoProgram::Missing {
            name: kind.program().to_owned(),
        })
    };
    let found = Installed::at(kind, &found).ok_or_else(gone)?;
    Ok(Installed {
        interpreter: interpreter(&found.program, programs).map_err(not)?,
        ..found
    })
}

/// `env` would search `PATH`, which may begin with a folder of the project.
fn interpreter(program: &Path, programs: &Programs) -> Result<Vec<OsString>, NoProgram> {
    let mut start = Vec::new();
    // A program that cannot be read is no script.
    let _ = fs::File::open(program)
        .and_then(|file| file.take(LONGEST_FIRST_LINE).read_to_end(&mut start));
    let line = String::from_utf8_lossy(
        start
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default(),
    )
    .into_owned();
    let Some(words) = line
        .strip_prefix("#!")
        .and_then(|line| line.trim().strip_prefix("/usr/bin/env "))
    else {
        return Ok(Vec::new());
    };
    let mut words = words.split_whitespace().skip_while(|word| *word == "-S");
    let name = programs.find(words.next().unwrap_or_default())?;
    Ok([name.into_os_string()]
        .into_iter()
        .chain(words.map(OsString::from))
        .collect())
}

/// The bytes of the first line that the kernel reads.
const LONGEST_FIRST_LINE: u64 = 256;

impl Installed {
    /// The program at `path`, if it exists and is executable.
    pub fn at(kind: Kind, path: &Path) -> Option<Self> {
        let program = path.canonicalize().ok()?;
        let data = fs::metadata(&program).ok()?;
        if !data.is_file() || data.permissions().mode() & 0o111 == 0 {
            return None;
        }
        let package = program
            .ancestors()
            .skip(1)
            .find(|folder| is_package(folder));
        let installation = package.or(program.parent())?.to_owned();
        let version = package.and_then(version_of);
        let beside = package.map(packages_beside).unwrap_or_default();
        Some(Self {
            kind,
            program,
            installation,
            beside,
            interpreter: Vec::new(),
            version,
        })
    }
}

/// Whether npm unpacked the folder: it has a manifest and is below `node_modules`.
fn is_package(folder: &Path) -> bool {
    folder.join("package.json").is_file()
        && folder
            .ancestors()
            .skip(1)
            .take(2)
            .any(|above| above.ends_with("node_modules"))
}

/// Sibling packages whose name begins with the package's name and a `-`: `@openai/codex-linux-x64`
/// beside `@openai/codex`. A symlink to a package elsewhere counts, as with pnpm; a symlink to
/// anything else opens nothing, wherever it points.
fn packages_beside(package: &Path) -> Vec<PathBuf> {
    let Some((scope, name)) = package.parent().zip(package.file_name()) else {
        return Vec::new();
    };
    let begins_like_it = |path: &PathBuf| {
        let rest = path
            .file_name()
            .and_then(|other| other.as_bytes().strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.starts_with(b"-"))
    };
    let entries = code_commit_dir::list(scope)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
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
    use std::io::Write as _;
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
        let found = find(
            Kind::Gemini,
            &Programs::new(Some(root.join("bin").as_os_str()), []),
        )
        .unwrap();
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
        let packages = ["codex", "codex-linux-x64", "codexes-linux-x64", "agents"]
            .map(|name| scope.join(name));
        packages
            .iter()
            .chain([&elsewhere, &root.join("mine")])
            .for_each(|folder| manifest(folder));
        fs::create_dir(scope.join("codex-no-package")).unwrap();
        symlink(&elsewhere, scope.join("codex-linux-arm64")).unwrap();
        for to in ["../../mine", "../..", "/"] {
            symlink(to, scope.join(format!("codex-to-{}", to.replace('/', "_")))).unwrap();
        }
        let found = Installed::at(Kind::Codex, &scope.join("codex/bin/codex.js")).unwrap();
        assert_eq!(found.installation, scope.join("codex"));
        assert_eq!(
            found.beside,
            ["codex-linux-arm64", "codex-linux-x64"].map(|name| scope.join(name))
        );
    }

    #[test]
    fn a_single_program_shows_its_folder_and_never_the_one_above() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        program(&root.join("share/claude/2.1.0"), 0o755);
        fs::create_dir(root.join("bin")).unwrap();
        symlink(root.join("share/claude/2.1.0"), root.join("bin/claude")).unwrap();
        let found = find(
            Kind::Claude,
            &Programs::new(Some(root.join("bin").as_os_str()), []),
        )
        .unwrap();
        assert_eq!(
            (found.installation, found.version),
            (root.join("share/claude"), None)
        );
    }

    #[test]
    fn a_file_that_cannot_be_started_and_a_relative_folder_are_passed_over() {
        let root = tempfile::tempdir().unwrap();
        program(&root.path().join("one/codex"), 0o644);
        program(&root.path().join("two/codex"), 0o755);
        let path = std::env::join_paths([Path::new("bin"), &root.path().join("one")]).unwrap();
        let missing = find(Kind::Codex, &Programs::new(Some(&path), [])).unwrap_err();
        assert_eq!(missing.to_string(), "Codex: `codex` is not on PATH");
        let path =
            std::env::join_paths([root.path().join("one"), root.path().join("two")]).unwrap();
        assert!(find(Kind::Codex, &Programs::new(Some(&path), [])).is_ok());
    }

    #[test]
    fn what_env_would_look_up_for_a_script_is_never_taken_from_the_project() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in [
            "tree/bin/node",
            "bin/node",
            "bin/gemini",
            "bin/codex",
            "bin/claude",
        ] {
            program(&at(name), 0o755);
        }
        let write = |name: &str, text: &str| {
            fs::File::create(at(name))
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
        };
        write("bin/gemini", "#!/usr/bin/env -S node --no-warnings\n");
        write("bin/codex", "#!/usr/bin/env only\n");
        write("bin/claude", "#!/bin/sh\n");
        program(&at("tree/bin/only"), 0o755);
        let path = std::env::join_paths([at("tree/bin"), at("bin")]).unwrap();
        let programs = Programs::new(Some(&path), [at("tree").as_path()]);
        let started = |kind| find(kind, &programs).map(|found| found.interpreter);
        assert_eq!(
            started(Kind::Gemini).unwrap(),
            [at("bin/node").as_os_str(), "--no-warnings".as_ref()]
        );
        assert_eq!(started(Kind::Claude).unwrap(), Vec::<OsString>::new());
        assert!(matches!(
            started(Kind::Codex).unwrap_err().why,
            NoProgram::Changeable { .. }
        ));
    }
}
