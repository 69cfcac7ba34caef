//! Whether a failed command judged the code, or could not do its work on this machine; and the hint that helps.

use std::path::{Path, PathBuf};

use code_commit_dir::{Links, read};

use crate::program::programs_in;
use crate::resolve::shows;
use crate::{Confinement, Env, Output, Rung};

mod hidden;
mod hint;
mod hosts;
mod judged;
mod lack;
mod module;
mod refused;
mod tool;

pub use hidden::hidden;
pub use hint::explain;
pub use lack::{Kind, Lack};

use lack::{Failed, Machine, Presence};

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
#[derive(Debug, Clone, Copy)]
pub struct Ran<'r> {
    /// How it ended, and what it printed.
    pub output: &'r Output,
    /// The root of the project.
    pub root: &'r Path,
    /// Its environment.
    pub env: &'r Env,
    /// Its sandbox.
    pub confinement: &'r Confinement,
}

impl Ran<'_> {
    /// Whether it said something about code.
    pub fn has_judged(&self) -> bool {
        judged::is_judged(&self.output.text())
    }

    /// What it lacked; `None` if it may have judged the code. The words may be of the program that ran.
    pub fn lack(&self) -> Option<Lack> {
        let exit_code = self.output.ended.exit_code()?;
        let text = self.output.text();
        // What the proxy refused is certain, whatever was printed about it.
        let refused =
            hosts::of_log(&self.output.refused).filter(|_| may_be_unfit(exit_code, &text));
        let refused = refused.map(|(what, help)| Lack::new(Kind::Network, what, help));
        refused.or_else(|| {
            lack(
                &Failed {
                    exit_code,
                    output: &text,
                },
                self,
            )
        })
    }
}

fn may_be_unfit(exit_code: i32, text: &str) -> bool {
    exit_code != 0 && !judged::is_judged(text)
}

fn lack(failed: &Failed<'_>, machine: &impl Machine) -> Option<Lack> {
    if !may_be_unfit(failed.exit_code, failed.output) {
        return None;
    }
    tool::missing(failed, machine)
        .or_else(|| module::missing(failed.output, machine))
        .or_else(|| refused::download(failed, machine))
        .or_else(|| refused::write(failed.output, machine))
}

impl Machine for Ran<'_> {
    fn program(&self, name: &str) -> Presence {
        let found = programs_in(self.env.get("PATH"), self.root, name);
        let found: Vec<PathBuf> = found
            .iter()
            .filter_map(|place| place.canonicalize().ok())
            .collect();
        match found.first() {
            None => Presence::Missing,
            Some(_) if found.iter().any(|place| shows(self.confinement, place)) => {
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
            let text = read(&self.root.join(manifest), MOST_BYTES, Links::Refused)
                .ok()
                .flatten();
            let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
            let is_edge =
                |letter: char| !letter.is_ascii_alphanumeric() && !"@/._-".contains(letter);
            text.split(is_edge).any(|word| normal(word) == wanted)
        };
        MANIFESTS.into_iter().any(names)
    }

    fn has_network(&self) -> bool {
        self.confinement.rung == Rung::Off || self.confinement.access.network
    }

    fn rung(&self) -> Rung {
        self.confinement.rung
    }

    fn blocked(&self) -> Option<String> {
        explain(self.output, self.confinement)
    }
}

/// Names of Python packages do not distinguish `-`, `_` and case.
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests;
