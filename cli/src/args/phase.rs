//! The flags of `phase`.

use std::str::FromStr;

use clap::Args;
use code_commit_runs::phase::{Override, Request};
use code_commit_settings::phase::Options;

use super::flags::{TurnLimitArgs, key};

#[derive(Debug, Clone, Args)]
pub struct PhaseArgs {
    /// init: make what a project needs; check: look the specs over; run: continue the open phase or start the next one; N: that phase; trust: adopt what a commit says of phase N; reopen: phase N has not passed
    #[arg(value_name = "init|check|run|N|trust|reopen")]
    pub action: Action,
    /// The phase to trust or to reopen
    #[arg(value_name = "PHASE", value_parser = clap::value_parser!(u32).range(1..))]
    pub number: Option<u32>,
    /// Begin a new run of the phase, even if one is not finished
    #[arg(long)]
    pub new: bool,
    /// A name of your own for this work: the first run with this key chooses the phase; once that phase has passed, its result is reported again and no other phase starts
    #[arg(long, value_name = "TEXT", value_parser = key)]
    pub key: Option<String>,
    /// Try a phase again that is stuck, although neither specs nor source nor verifier have changed
    #[arg(long)]
    pub retry: bool,
    /// Who works, and how.
    #[command(flatten)]
    pub options: Options,
    /// Say how large the first prompt is, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How far the run may go.
    #[command(flatten)]
    pub limits: TurnLimitArgs,
}

impl PhaseArgs {
    pub fn request(&self) -> Request {
        Request {
            phase: if let Action::Number(number) = self.action {
                Some(number)
            } else {
                None
            },
            options: self.options.clone(),
            new: self.new,
            key: self.key.clone(),
            retry: self.retry,
            dry_run: self.dry_run,
            limits: self.limits.layer.clone(),
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
