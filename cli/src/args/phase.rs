//! The flags of `phase`.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use code_commit_runs::phase::{Override, Request};
use code_commit_settings::{Address, Sandbox, duration};

use super::flags::{TurnLimitArgs, key, sandbox};

#[derive(Debug, Clone, Args)]
pub struct PhaseArgs {
    /// init: make what a project needs; check: look the specs over; run: continue the open phase or start the next one; N: that phase; trust: adopt what a commit says of phase N; reopen: phase N has not passed
    #[arg(value_name = "init|check|run|N|trust|reopen")]
    pub action: Action,
    /// The phase to trust or to reopen
    #[arg(value_name = "PHASE", value_parser = clap::value_parser!(u32).range(1..))]
    pub number: Option<u32>,
    /// The model of both roles, instead of the configured ones: gemini-…, claude-…, gpt-…, or gemini/NAME, claude/NAME, codex/NAME; of several, separated by commas, the next works where one is out of quota, out of service, or refuses
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The builder's model
    #[arg(long, short, value_name = "MODEL")]
    pub builder_model: Option<String>,
    /// The verifier's model
    #[arg(long, short = 'v', value_name = "MODEL")]
    pub verifier_model: Option<String>,
    /// The builder's models for repairs, separated by commas: one for each, the last one for all further ones
    #[arg(long, value_name = "MODEL")]
    pub escalate: Option<String>,
    /// Begin a new run of the phase, even if one is not finished
    #[arg(long)]
    pub new: bool,
    /// A name of your own for this work: the first run with this key chooses the phase; once that phase has passed, its result is reported again and no other phase starts
    #[arg(long, value_name = "TEXT", value_parser = key)]
    pub key: Option<String>,
    /// Try a phase again that is stuck, although neither specs nor source nor verifier have changed
    #[arg(long)]
    pub retry: bool,
    /// The sandbox around each role; auto is a container where Docker is there, else namespaces; Landlock is not enough for a role
    #[arg(long, value_name = "MODE", value_parser = sandbox())]
    pub sandbox: Option<Sandbox>,
    /// Where the service of both roles is, if not where their agent looks by itself; for Claude Code and Gemini CLI
    #[arg(long, value_name = "URL")]
    pub base_url: Option<Address>,
    /// Say how large the first prompt is, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How far the run may go.
    #[command(flatten)]
    pub limits: TurnLimitArgs,
    /// How long one turn of a role may take
    #[arg(long, visible_alias = "timeout", value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub turn_timeout: Duration,
    /// How long a role may be silent
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15m")]
    pub idle_timeout: Duration,
    /// How long one command of `abl-cmd` may take
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    pub command_timeout: Duration,
}

impl PhaseArgs {
    pub fn request(&self) -> Request {
        Request {
            phase: if let Action::Number(number) = self.action {
                Some(number)
            } else {
                None
            },
            model: self.model.clone(),
            builder_model: self.builder_model.clone(),
            escalate: self.escalate.clone(),
            verifier_model: self.verifier_model.clone(),
            base_url: self.base_url.clone(),
            sandbox: self.sandbox,
            new: self.new,
            key: self.key.clone(),
            retry: self.retry,
            dry_run: self.dry_run,
            layer: self.limits.layer.clone(),
            turn_timeout: self.turn_timeout,
            idle_timeout: self.idle_timeout,
            command_timeout: self.command_timeout,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Create what a project needs.
    Init,
    Check,
    /// Continue the open phase, or start the next one.
    Run,
    Number(u32),
    /// Override whether a phase has passed.
    Override(Override),
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "init" => Ok(Self::Init),
            "check" => Ok(Self::Check),
            "run" => Ok(Self::Run),
            "trust" => Ok(Self::Override(Override::Trust)),
            "reopen" => Ok(Self::Override(Override::Reopen)),
            _ => match text.strip_prefix("PHASE=").unwrap_or(text).parse() {
                Ok(number) if number > 0 => Ok(Self::Number(number)),
                _ => Err(format!(
                    "`{text}` is neither init, check, run, trust, reopen nor the number of a phase"
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_a_word_or_the_number_of_a_phase() {
        let parse = |text: &str| text.parse::<Action>();
        assert_eq!(parse("run"), Ok(Action::Run));
        assert_eq!(parse("12"), Ok(Action::Number(12)));
        assert_eq!(
            parse("PHASE=3"),
            Ok(Action::Number(3)),
            "as S3 §The Loop writes it"
        );
        for bad in [
            "0",
            "-1",
            "RUN",
            "",
            "1.5",
            "PHASE=",
            "PHASE=run",
            "PHASE=PHASE=1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
