//! What the loops of agents share: limits that are checked between turns, and what the configuration
//! protects.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::anyhow;
use code_commit_agent::Kind;
use code_commit_changes::BACKUP;
use code_commit_engine::{AgentLoop, Agents, Durability, Recorded};
use code_commit_logging::RunFolder;
use code_commit_loop_spec::STORE;
use code_commit_perform::{AgentFault, AgentLimits, AgentWorld, Cast, Past};
use code_commit_report::{Output, phrases, printable, printable_name};
use code_commit_settings::{Address, Settings};

use crate::exit::{Exit, Failure};
use crate::model;

pub(crate) fn limits(settings: &Settings) -> AgentLimits {
    AgentLimits {
        max_cost_usd: settings.limits.max_cost.map(|cost| cost.0.as_usd()),
        max_tokens: settings.limits.max_tokens.map(u64::from),
        max_time_ms: settings
            .limits
            .max_time
            .map(|time| code_commit_logging::millis(time.0)),
    }
}

/// How long a turn of a run waits for a quota by default: a limit per minute is waited out.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// How many agents there are besides the first one.
pub(crate) fn numbers<T>(others: &[T], stronger: usize) -> Agents {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Agents {
        others: number(others.len()),
        stronger: number(stronger),
    }
}

/// Agents make their calls themselves. The limit may be meant for other loops, so this only warns.
pub(crate) fn warn_of_calls(settings: &Settings, output: &Output) {
    if settings.limits.max_calls.is_some() {
        output.warn("limits.max_calls has no effect here: an agent makes its own calls");
    }
}

/// Only Claude Code reports the cost of a turn. A limit that cannot be enforced is refused at once.
pub(crate) fn can_keep(kind: Kind, settings: &Settings) -> Result<(), Failure> {
    match kind {
        Kind::Gemini | Kind::Codex if settings.limits.max_cost.is_some() => {
            let why = anyhow!(
                "{} does not report what its turns cost, so limits.max_cost cannot be enforced",
                kind.name()
            );
            Err(Failure::refused(
                why,
                "limit the tokens instead: --max-tokens NUMBER",
            ))
        }
        Kind::Claude | Kind::Gemini | Kind::Codex => Ok(()),
    }
}

/// Codex takes no address from its environment.
fn address_variable(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Claude => Some("ANTHROPIC_BASE_URL"),
        Kind::Gemini => Some("GOOGLE_GEMINI_BASE_URL"),
        Kind::Codex => None,
    }
}

/// The variable that tells an agent its service's address.
pub(crate) fn address(kind: Kind, base_url: Option<&Address>) -> Option<(OsString, OsString)> {
    Some((address_variable(kind)?.into(), base_url?.0.clone().into()))
}

/// Refuses `--base-url` for an agent that cannot use it; warns if the address is not encrypted.
pub(crate) fn can_be_told(
    kind: Kind,
    base_url: Option<&Address>,
    output: &Output,
) -> Result<(), Failure> {
    let Some(base_url) = base_url else {
        return Ok(());
    };
    if address_variable(kind).is_some() {
        base_url
            .0
            .parse()
            .iter()
            .for_each(|base| model::warn_in_the_clear(base, output));
        return Ok(());
    }
    let why = anyhow!(
        "{} cannot be told with --base-url where its service is",
        kind.name()
    );
    Err(Failure::refused(
        why,
        "set openai_base_url in its own config.toml",
    ))
}

pub(crate) struct Words {
    /// How to continue the run.
    pub(crate) go_on: &'static str,
    /// How to try again.
    pub(crate) again: &'static str,
    pub(crate) worker: &'static str,
    /// Where a key could have come from.
    pub(crate) key_in: &'static str,
}

impl Words {
    /// Why a run was stopped from the outside.
    pub(crate) fn fault(&self, error: AgentFault, folder: &RunFolder) -> Failure {
        if matches!(error, AgentFault::KeyInPrompt { .. }) {
            return Failure::refused(error, format!("take the key out of {}", self.key_in));
        }
        if matches!(error, AgentFault::NotPutBack { .. }) {
            let help = format!("fix the cause; {} tries again", self.again);
            return Failure::new(Exit::TreeNotRestored, error).help(help);
        }
        let exit = if matches!(error, AgentFault::Interrupted) {
            Exit::Interrupted
        } else {
            Exit::Fault
        };
        let help = format!(
            "{}; what happened is in {}",
            self.go_on,
            folder.path().display()
        );
        Failure::new(exit, error).help(help)
    }

    /// Restores what the agent that a killed harness left behind may not touch, and records that its turn was cut
    /// off; `restored` may object before that. Gives the answers that hold.
    pub(crate) fn settle<P: AgentLoop, C: Cast<P>>(
        &self,
        world: &mut AgentWorld<'_, C>,
        past: &Past,
        role_of: impl Fn(&str) -> Option<P::Role>,
        restored: impl FnOnce(&[String]) -> Result<(), Failure>,
        output: &Output,
    ) -> Result<Vec<Recorded>, Failure> {
        let folder = world.record.folder().clone();
        let cut_off = world.cut_off::<P>(past, role_of);
        let (paths, answer) = cut_off.map_err(|error| self.fault(error, &folder))?;
        for path in &paths {
            let (path, worker) = (printable(path), self.worker);
            output.warn(&format!(
                "{path} may not be changed by the {worker} that was interrupted; it was restored"
            ));
        }
        restored(&paths)?;
        let mut answers = past.answers.clone();
        if let Some(answer) = answer {
            world
                .record
                .answer(&answer, Durability::Later)
                .map_err(anyhow::Error::from)?;
            answers.push(answer);
        }
        Ok(answers)
    }
}

/// Files named in a message.
const NAMED: usize = 5;

/// Added to warnings about restored files: the harness cannot tell an agent's change from one that the user
/// made meanwhile.
pub(crate) fn as_changed(turn: u32) -> String {
    format!(
        "if you made the change: the changed version is in {BACKUP}/{} of the run's folder",
        code_commit_perform::taken(turn)
    )
}

/// Names what a turn changed that a program runs later without being asked: an agent may, but a person should know.
pub(crate) fn worth_a_look(changed: &[String]) -> Option<String> {
    // Session files are the work of agents.
    let later = |path: &&String| {
        !path.starts_with(STORE) && code_commit_names::runs_later(&path.to_lowercase()).is_some()
    };
    let paths: Vec<String> = changed
        .iter()
        .filter(later)
        .map(|path| printable_name(path))
        .collect();
    let named = (!paths.is_empty()).then(|| phrases::first(&paths, NAMED))?;
    Some(format!(
        "{named} can run code or change what others see; look at what the agent changed there"
    ))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use code_commit_settings::{Environment, Keys};

    use super::*;

    #[test]
    fn what_an_agent_changed_that_runs_later_is_named_and_nothing_else() {
        let changed = |paths: &[&str]| {
            worth_a_look(
                &paths
                    .iter()
                    .map(|path| (*path).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let session = ".cuggino/wip/1.plan.md";
        assert_eq!(changed(&["src/main.rs", "docs/agents.rs", session]), None);
        insta::assert_snapshot!(
            changed(&["src/main.rs", "CLAUDE.md", "a/.envrc"]).unwrap(),
            @"CLAUDE.md, a/.envrc can run code or change what others see; look at what the agent changed there"
        );
    }

    #[test]
    fn the_variables_of_all_agents_are_known() {
        let keys = Keys::find(&Environment::of([]), Path::new("/nowhere"));
        for kind in [Kind::Claude, Kind::Gemini, Kind::Codex] {
            assert!(
                keys.is_variable(OsStr::new(kind.key_variable())),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn each_agent_is_told_its_services_address_in_its_own_variable() {
        let base_url = Address("http://proxy".parse().unwrap());
        let told = |kind| address(kind, Some(&base_url)).map(|(name, _)| name);
        assert_eq!(told(Kind::Claude), Some("ANTHROPIC_BASE_URL".into()));
        assert_eq!(told(Kind::Gemini), Some("GOOGLE_GEMINI_BASE_URL".into()));
        assert_eq!(told(Kind::Codex), None);
    }
}
