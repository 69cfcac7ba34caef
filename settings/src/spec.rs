//! `.cuggino.json`, the only place for its six settings (S4 §Configuration), and the flags that say who works.

use std::path::{Component, Path};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::read::in_plain_words;
use crate::{Address, Sandbox, duration};

/// The content, with defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// The folder with the specs, relative to the root.
    #[serde(rename = "specsPath")]
    pub specs: String,
    /// The maximum number of iterations.
    pub max_iterations: u32,
    /// The command line that runs after planning.
    #[serde(rename = "setupCommand", skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The command line that runs before implementing and reviewing.
    #[serde(rename = "checkCommand", skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Whether each task is committed.
    pub commit: bool,
    /// Whether the watch uses idle time for audits.
    pub audit: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            specs: ".specs".to_owned(),
            max_iterations: 10,
            setup: None,
            check: None,
            commit: false,
            audit: false,
        }
    }
}

impl Config {
    /// Reads the file's text; an empty one gives the defaults. The specs folder may not be one of
    /// those that are `taken`.
    pub fn parse(text: &str, taken: &[&str]) -> Result<Self, String> {
        let mut config: Self = if text.trim().is_empty() {
            Self::default()
        } else if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|e| in_plain_words(&e.to_string()))?
        } else {
            // Serde would read an array as the settings in order.
            return Err("it must be an object: { … }".to_owned());
        };
        let given = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        config.specs = folder(&given(config.specs).unwrap_or(Self::default().specs), taken)?;
        config.setup = config.setup.and_then(given);
        config.check = config.check.and_then(given);
        if config.max_iterations == 0 {
            return Err("maxIterations must be at least 1".to_owned());
        }
        Ok(config)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Strings, numbers and booleans always have a JSON form.
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .unwrap_or_default()
    }
}

/// Who works, and within which sandbox: flags, and the record of what a run began with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Args)]
#[serde(default)]
pub struct Options {
    /// Which agent; of several, separated by commas, the next works where one is out of quota, out of service, or refuses [default: claude]
    #[arg(long, value_name = "AGENT", value_delimiter = ',')]
    pub agent: Vec<Agent>,
    /// Its model, if not the one that it is set up for; of several agents one for each, of one agent those to try in turn
    #[arg(long = "model", value_name = "NAME", value_delimiter = ',')]
    pub agent_model: Vec<String>,
    /// The agent's models for repairs of what a review found, separated by commas: one for each, the last one for all further ones
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub escalate: Vec<String>,
    /// Allow tools without confirmation [default: skip]
    #[arg(long, value_name = "WHETHER")]
    pub permissions: Option<Permissions>,
    /// Where its service is, if not where it looks by itself; for Claude Code and Gemini CLI
    #[arg(long, value_name = "URL")]
    pub base_url: Option<Address>,
    /// The sandbox around the agent and around the setup and check commands
    #[arg(long, value_name = "MODE", value_enum)]
    pub sandbox: Option<Sandbox>,
    /// How long one turn of an agent may take [default: 2h]
    #[arg(long, visible_alias = "timeout", value_name = "DURATION", value_parser = duration)]
    pub turn_timeout: Option<Duration>,
    /// How long an agent may be silent [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub idle_timeout: Option<Duration>,
    /// How long the setup and check commands may take [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub command_timeout: Option<Duration>,
}

impl Options {
    /// These options, and those of `begun` where they are not given.
    #[must_use]
    pub fn over(self, begun: Self) -> Self {
        fn given<T>(flags: Vec<T>, begun: Vec<T>) -> Vec<T> {
            if flags.is_empty() { begun } else { flags }
        }
        Self {
            agent: given(self.agent, begun.agent),
            agent_model: given(self.agent_model, begun.agent_model),
            escalate: given(self.escalate, begun.escalate),
            permissions: self.permissions.or(begun.permissions),
            base_url: self.base_url.or(begun.base_url),
            sandbox: self.sandbox.or(begun.sandbox),
            turn_timeout: self.turn_timeout.or(begun.turn_timeout),
            idle_timeout: self.idle_timeout.or(begun.idle_timeout),
            command_timeout: self.command_timeout.or(begun.command_timeout),
        }
    }

    /// The agent that works if nothing keeps it from that.
    pub fn first(&self) -> Agent {
        self.agent.first().copied().unwrap_or_default()
    }
}

/// The agents that can be driven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    /// Claude Code
    #[default]
    Claude,
    /// Gemini CLI
    Gemini,
    /// Codex
    Codex,
}

/// Whether an agent may use its tools without confirmation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// All of them; the sandbox is what holds
    #[default]
    Skip,
    /// Those that it is set up for; others are denied
    Ask,
}

/// Planning sessions may write specs, and the focus may open them to agents: none of these folders
/// may be opened like that. Compared in lower case, for case-insensitive file systems.
fn is_taken(name: &str, taken: &[&str]) -> bool {
    taken.iter().any(|taken| name.eq_ignore_ascii_case(taken))
}

/// A folder below the root, in the form that agents and git are given: without `./` and final
/// slash.
pub fn folder(text: &str, taken: &[&str]) -> Result<String, String> {
    let path = Path::new(text);
    let names = path.components().filter(|part| *part != Component::CurDir);
    let name = |part| {
        let Component::Normal(name) = part else {
            return None;
        };
        name.to_str()
    };
    let names: Option<Vec<&str>> = names.map(name).collect();
    match names {
        Some(names) if names.iter().any(|name| is_taken(name, taken)) => Err(format!(
            "specsPath: `{text}` is where git or the loop keeps its own files"
        )),
        Some(names) if !names.is_empty() => Ok(names.join("/")),
        Some(_) | None => Err(format!(
            "specsPath: `{text}` is not a folder inside of the project"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKEN: [&str; 2] = [".git", ".cuggino"];

    #[test]
    fn a_missing_and_an_empty_file_give_the_defaults() {
        for text in [
            "",
            " \n",
            "{}",
            r#"{"setupCommand": "", "checkCommand": " ", "specsPath": ""}"#,
        ] {
            assert_eq!(Config::parse(text, &TAKEN), Ok(Config::default()), "{text}");
        }
    }

    #[test]
    fn what_is_saved_comes_back() {
        let config = Config {
            specs: "docs/specs".into(),
            max_iterations: 3,
            setup: Some("npm ci".into()),
            check: None,
            commit: true,
            audit: true,
        };
        insta::assert_snapshot!(config.to_json(), @r#"
        {
          "specsPath": "docs/specs",
          "maxIterations": 3,
          "setupCommand": "npm ci",
          "commit": true,
          "audit": true
        }
        "#);
        assert_eq!(Config::parse(&config.to_json(), &TAKEN), Ok(config));
    }

    #[test]
    fn a_file_with_an_error_says_what_is_wrong_and_where() {
        let bad = [
            r#"{"maxIterations": 0}"#,
            r#"{"maxIterations": "ten"}"#,
            r#"{"specPath": "x"}"#,
            r#"{"specsPath": "../x"}"#,
            r#"{"specsPath": ".git/hooks"}"#,
            r#"{"specsPath": "./.Cuggino/"}"#,
            "{",
            "[]",
            r#"["docs"]"#,
            "null",
        ];
        let errors: Vec<String> = bad
            .iter()
            .map(|text| Config::parse(text, &TAKEN).unwrap_err())
            .collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        maxIterations must be at least 1
        invalid type: string "ten", expected a whole number at line 1 column 23
        unknown field `specPath`, expected one of `specsPath`, `maxIterations`, `setupCommand`, `checkCommand`, `commit`, `audit` at line 1 column 11
        specsPath: `../x` is not a folder inside of the project
        specsPath: `.git/hooks` is where git or the loop keeps its own files
        specsPath: `./.Cuggino/` is where git or the loop keeps its own files
        EOF while parsing an object at line 1 column 1
        it must be an object: { … }
        it must be an object: { … }
        it must be an object: { … }
        "#);
    }
}
