//! What the machine and the sandbox of a build say about its failure.

use std::path::{Path, PathBuf};

use code_commit_engine::Cause;
use code_commit_fitness::{Failed, Kind, Lack, Machine, Presence};
use code_commit_logging::Redactor;
use code_commit_runner::{Confinement, Env, Output, Rung};

/// Files at the root in which a project names the libraries that it needs.
const MANIFESTS: [&str; 8] = [
    "package.json",
    "pyproject.toml",
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "setup.cfg",
    "setup.py",
    "Pipfile",
];
/// A longer manifest is not read.
const MOST_BYTES: u64 = 1 << 20;

/// A command that has ended, and where it ran.
pub(crate) struct Ran<'r> {
    pub(crate) output: &'r Output,
    pub(crate) root: &'r Path,
    pub(crate) env: &'r Env,
    pub(crate) confinement: &'r Confinement,
}

impl Ran<'_> {
    /// What it lacked, if that explains its failure. The words may be of the program that ran, so keys are
    /// redacted.
    pub(crate) fn lack(&self, redactor: &Redactor) -> Option<Cause> {
        let exit_code = self.output.ended.exit_code()?;
        let found = code_commit_fitness::lack(&Failed { exit_code, output: &self.output.text() }, self);
        found.map(|Lack { kind, what, help }| Cause {
            code: code(kind).to_owned(),
            message: redactor.redact(&what).into_owned(),
            remedy: Some(redactor.redact(&help).into_owned()),
        })
    }
}

/// The codes of the reference.
fn code(kind: Kind) -> &'static str {
    match kind {
        Kind::Tool => "tool-missing",
        Kind::Module => "module-missing",
        Kind::Network => "no-network",
        Kind::Cache => "cache-refused",
        Kind::Permission => "write-refused",
    }
}

impl Machine for Ran<'_> {
    fn program(&self, name: &str) -> Presence {
        let found = code_commit_runner::programs_in(self.env.get("PATH"), self.root, name);
        let found: Vec<PathBuf> = found.iter().filter_map(|place| place.canonicalize().ok()).collect();
        match found.first() {
            None => Presence::Missing,
            Some(_) if found.iter().any(|place| code_commit_runner::shows(self.confinement, place)) => {
                Presence::Visible
            }
            Some(place) => Presence::Hidden(place.clone()),
        }
    }

    fn is_file(&self, path: &Path) -> bool {
        self.root.join(path).is_file()
    }

    fn declares(&self, library: &str) -> bool {
        let wanted = normal(library);
        let names = |manifest: &str| {
            let text =
                code_commit_dir::read(&self.root.join(manifest), MOST_BYTES, code_commit_dir::Links::Refused)
                    .ok()
                    .flatten();
            let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
            let is_edge = |letter: char| !letter.is_ascii_alphanumeric() && !"@/._-".contains(letter);
            text.split(is_edge).any(|word| normal(word) == wanted)
        };
        MANIFESTS.into_iter().any(names)
    }

    fn has_network(&self) -> bool {
        self.confinement.rung == Rung::Off || self.confinement.access.network
    }

    fn blocked(&self) -> Option<String> {
        code_commit_runner::explain(self.output, self.confinement)
    }
}

/// Names of Python packages do not distinguish `-`, `_` and case.
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use code_commit_runner::{Captured, Ended};

    use super::*;

    fn lack(files: &[(&str, &str)], code: i32, text: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            code_commit_dir::replace(&folder.path().join(name), content.as_bytes()).unwrap();
        }
        let output = Output {
            ended: Ended::Exited(code),
            captured: Captured { head: text.as_bytes().to_vec(), ..Captured::default() },
            apart: None,
            elapsed: Duration::ZERO,
            survivors_killed: 0,
            survivors_left: 0,
        };
        let env = Env::allowed([("PATH".into(), "/usr/bin:/bin".into())], &[]);
        let access = code_commit_runner::Access::new(folder.path(), &env);
        let confinement = Confinement { rung: Rung::Bwrap, access };
        let ran = Ran { output: &output, root: folder.path(), env: &env, confinement: &confinement };
        ran.lack(&Redactor::default()).map(|cause| format!("{}: {}", cause.code, cause.message))
    }

    #[test]
    fn a_program_is_missing_only_if_no_folder_of_the_path_holds_it() {
        let missing = lack(&[], 127, "./build.sh: 2: no-such-tool: not found\n");
        assert_eq!(missing.as_deref(), Some("tool-missing: the program `no-such-tool` is not installed"));
        assert_eq!(lack(&[], 127, "./build.sh: 2: sh: not found\n"), None);
    }

    #[test]
    fn a_library_is_missing_only_if_a_manifest_names_it() {
        let text = "ModuleNotFoundError: No module named 'typing_extra'\n";
        assert_eq!(lack(&[], 1, text), None);
        let manifest = ("requirements.txt", "# all\nTyping-Extra>=4\n");
        assert!(lack(&[manifest], 1, text).unwrap().starts_with("module-missing: "));
        assert_eq!(lack(&[manifest, ("typing_extra.py", "")], 1, text), None);
        let text = "Error: Cannot find module '@scope/part/sub'\n";
        let manifest = ("package.json", r#"{"dependencies":{"@scope/part":"^1"}}"#);
        assert!(lack(&[manifest], 1, text).unwrap().contains("`@scope/part`"));
    }
}
