//! What the loops of agents have in common: limits that are looked at between turns, and what the configuration protects.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agent::Kind;
use anyhow::anyhow;
use guard::Policy;
use perform::{AgentLimits, Repository, UncommittedCopies};
use repo::GitError;
use report::{Output, phrases, printable};
use settings::{Address, Settings};

use crate::exit::Failure;
use crate::model;

/// The limits in force.
pub fn limits(settings: &Settings) -> AgentLimits {
    AgentLimits {
        max_cost_usd: settings.max_cost.value.map(llm::Money::as_usd),
        max_tokens: settings.max_tokens.value,
        max_time_ms: settings.max_time.value.map(logging::millis),
    }
}

/// Every agent makes its calls by itself. The limit is meant for other loops too, so that it is no reason to refuse.
pub fn warn_of_calls(settings: &Settings, output: &Output) {
    if settings.max_calls.value.is_some() {
        output.warn("limits.max_calls does not hold here: an agent makes its calls by itself");
    }
}

/// Only Claude Code says what a turn costs. A limit that nobody can keep is better refused at once.
pub fn can_keep(kind: Kind, settings: &Settings) -> Result<(), Failure> {
    match kind {
        Kind::Gemini | Kind::Codex if settings.max_cost.value.is_some() => {
            let why = anyhow!(
                "{} does not say what its turns cost, so limits.max_cost cannot be kept",
                kind.name()
            );
            Err(Failure::refused(why, "limit the tokens instead: --max-tokens NUMBER"))
        }
        Kind::Claude | Kind::Gemini | Kind::Codex => Ok(()),
    }
}

/// What the configuration protects, and nothing else but `.git` and what is ours; none where it protects nothing.
pub fn protected(settings: &Settings) -> Option<Policy> {
    let nothing_else = Policy::scoped(Vec::<String>::new());
    let patterns = &settings.protect;
    (!patterns.is_empty())
        .then(|| patterns.iter().fold(nothing_else, |policy, list| policy.protect(&list.value)))
}

/// Codex takes no address from its environment.
fn address_variable(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Claude => Some("ANTHROPIC_BASE_URL"),
        Kind::Gemini => Some("GOOGLE_GEMINI_BASE_URL"),
        Kind::Codex => None,
    }
}

/// What tells an agent where its service is.
pub fn address(kind: Kind, base_url: Option<&Address>) -> Option<(OsString, OsString)> {
    Some((address_variable(kind)?.into(), base_url?.0.clone().into()))
}

/// An error where `--base-url` is given and the agent has no ear for it; a warning where what it sends there is not encrypted.
pub fn can_be_told(kind: Kind, base_url: Option<&Address>, output: &Output) -> Result<(), Failure> {
    let Some(base_url) = base_url else { return Ok(()) };
    if address_variable(kind).is_some() {
        base_url.0.parse().iter().for_each(|base| model::warn_in_the_clear(base, output));
        return Ok(());
    }
    let why = anyhow!("{} cannot be told with --base-url where its service is", kind.name());
    Err(Failure::refused(why, "set openai_base_url in its own config.toml"))
}

/// So many files are named.
const NAMED: usize = 5;

/// Copies what is not committed into the folder of a run that begins: agents may change it, and git could not bring it back.
pub fn keep_uncommitted(
    repositories: &BTreeMap<String, Repository>,
    run: &Path,
    output: &Output,
) -> Result<(), Failure> {
    for (name, repository) in repositories {
        match UncommittedCopies::of(repository, name, run).make(repository) {
            Ok(without) if without.is_empty() => {}
            Ok(without) => output.warn(&format!(
                "not committed, and no copies of it are kept, since it is too much or cannot be read: {}",
                named(&without)
            )),
            // Without git nothing is known of what has been kept elsewhere.
            Err(GitError::Open(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Behind warnings of what was restored: no harness can tell an agent's change from one that a person made meanwhile.
pub fn as_changed(turn: u32) -> String {
    format!("in case that was you: it lies as it was changed in {} of the run's folder", perform::taken(turn))
}

/// Says what a run has changed of it, and where it is as it was. The rest of the copies goes.
pub fn say_uncommitted(repositories: &BTreeMap<String, Repository>, run: &Path, output: &Output) {
    for (name, repository) in repositories {
        let copies = UncommittedCopies::of(repository, name, run);
        let folder = printable(&copies.folder().display().to_string());
        match copies.settle() {
            Ok(changed) if changed.is_empty() => {}
            Ok(changed) => output.warn(&format!(
                "not committed when the run began, and changed or removed since: {}; as it was: {folder}",
                named(&changed)
            )),
            Err(error) => output.warn(&format!("what was not committed lies in {folder}: {error}")),
        }
    }
}

fn named(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    phrases::first(&shown, NAMED)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn the_variables_of_all_agents_are_known() {
        for kind in [Kind::Claude, Kind::Gemini, Kind::Codex] {
            assert!(settings::keys::is_key_variable(OsStr::new(kind.key_variable())), "{kind:?}");
        }
    }
}
