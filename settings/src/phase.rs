//! `.abl/abl.config.yaml`, in the format of S3's own projects, and the flags of a phase. Every key may be left out.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use clap::Args;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Address, Sandbox, duration};

const DEFAULT_MODEL: &str = "gemini-3.8-flash";

/// Who works, within which sandbox, for how long: flags, and the record of what a run began with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Args)]
#[serde(default)]
pub struct Options {
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
    /// The sandbox around each role; auto is a container where Docker is there, else namespaces; Landlock is not enough for a role
    #[arg(long, value_name = "MODE", value_enum)]
    pub sandbox: Option<Sandbox>,
    /// Where the service of both roles is, if not where their agent looks by itself; for Claude Code and Gemini CLI
    #[arg(long, value_name = "URL")]
    pub base_url: Option<Address>,
    /// How long one turn of a role may take [default: 1h]
    #[arg(long, visible_alias = "timeout", value_name = "DURATION", value_parser = duration)]
    pub turn_timeout: Option<Duration>,
    /// How long a role may be silent [default: 15m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub idle_timeout: Option<Duration>,
    /// How long one command of `abl-cmd` may take [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub command_timeout: Option<Duration>,
}

/// The file. Unknown keys are ignored, because another program shares the file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    directories: Option<Directories>,
    models: Option<Models>,
    builder_commands: Option<Commands>,
    verifier_commands: Option<Commands>,
    #[serde(rename = "loop")]
    limits: Option<Limits>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Directories {
    src: Option<String>,
    tests: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Models {
    builder: Option<String>,
    verifier: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Limits {
    max_verifier_iterations: Option<u32>,
}

/// A command of the configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Entry {
    /// The shell line; no role ever sees it.
    pub command: String,
    /// Its description.
    #[serde(default, deserialize_with = "or_empty")]
    pub description: String,
}

fn or_empty<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// Commands by name: a map, or a list whose entries have a `name`.
#[derive(Default)]
struct Commands(BTreeMap<String, Entry>);

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    entry: Entry,
}

impl Commands {
    fn add<E: Error>(&mut self, name: String, entry: Entry) -> Result<(), E> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
        if name.is_empty() || name == "get-spec" || !name.chars().all(is_plain) {
            return Err(E::custom(format!(
                "`{name}` cannot be the name of a command"
            )));
        }
        if self.0.contains_key(&name) {
            return Err(E::custom(format!("there are two commands named `{name}`")));
        }
        self.0.insert(name, entry);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Commands {
    fn deserialize<D: Deserializer<'de>>(file: D) -> Result<Self, D::Error> {
        file.deserialize_any(Self::default())
    }
}

/// Not an untagged enum, whose errors say neither what is wrong nor where.
impl<'de> Visitor<'de> for Commands {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("commands by name, or a list of commands that have a name")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some((name, entry)) = map.next_entry()? {
            self.add(name, entry)?;
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self, A::Error> {
        while let Some(Named { name, entry }) = list.next_element()? {
            self.add(name, entry)?;
        }
        Ok(self)
    }
}

/// The content, with defaults.
#[derive(Debug, Clone)]
pub struct Config {
    /// The source folder, relative to the root.
    pub src: String,
    /// The tests folder, relative to the root.
    pub tests: String,
    /// The builder's model.
    pub builder_model: String,
    /// The verifier's model.
    pub verifier_model: String,
    /// What `abl-cmd` runs for the builder.
    pub builder_commands: BTreeMap<String, Entry>,
    /// What `abl-cmd` runs for the verifier.
    pub verifier_commands: BTreeMap<String, Entry>,
    /// The maximum number of verifications.
    pub iterations: u32,
}

impl Config {
    /// Reads the file's text; `None` for a project without the file. Errors say where.
    pub fn parse(text: Option<&str>) -> Result<Self, String> {
        let file: File = match text.filter(|text| has_content(text)) {
            Some(text) => serde_saphyr::from_str(text).map_err(|error| error.to_string())?,
            None => File::default(),
        };
        let folders = file.directories.unwrap_or_default();
        let models = file.models.unwrap_or_default();
        let given = |value: Option<String>, default: &str| {
            let value = value.unwrap_or_default();
            let value = value.trim();
            if value.is_empty() { default } else { value }.to_owned()
        };
        let iterations = file.limits.unwrap_or_default().max_verifier_iterations;
        if iterations == Some(0) {
            return Err("loop.max_verifier_iterations must be at least 1".to_owned());
        }
        Ok(Self {
            src: given(folders.src, "src"),
            tests: given(folders.tests, ".abl/tests"),
            builder_model: given(models.builder, DEFAULT_MODEL),
            verifier_model: given(models.verifier, DEFAULT_MODEL),
            builder_commands: file.builder_commands.unwrap_or_default().0,
            verifier_commands: file.verifier_commands.unwrap_or_default().0,
            iterations: iterations.unwrap_or(5),
        })
    }
}

/// Whether there is anything but comments.
fn has_content(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    lines
        .filter(|line| !line.is_empty())
        .any(|line| !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_existing_project_is_understood() {
        let text = "directories:\n  src: app\n  tests: e2e\nmodels:\n  builder: gemini-2.5-pro\n  verifier: gemini-2.5-flash\n\
            builder_commands:\n  lint:\n    command: npm run lint\n    description: Run the linter\nverifier_commands:\n\
            loop:\n  max_verifier_iterations: 3\nunknown: {a: 1}\n";
        let config = Config::parse(Some(text)).unwrap();
        assert_eq!(
            (
                config.src.as_str(),
                config.tests.as_str(),
                config.iterations
            ),
            ("app", "e2e", 3)
        );
        assert_eq!(config.builder_commands["lint"].command, "npm run lint");
        assert!(config.verifier_commands.is_empty());
    }

    #[test]
    fn commands_may_be_a_list_of_commands_with_names() {
        let text = "builder_commands: []\nverifier_commands:\n  - name: seed\n    command: npm run seed\n\
            \x20   description: Fills the database\n  - {name: stop, command: npm stop}\n";
        let config = Config::parse(Some(text)).unwrap();
        assert!(config.builder_commands.is_empty());
        let seed = &config.verifier_commands["seed"];
        assert_eq!(
            (seed.command.as_str(), seed.description.as_str()),
            ("npm run seed", "Fills the database")
        );
        assert_eq!(config.verifier_commands["stop"].command, "npm stop");
    }

    #[test]
    fn an_empty_file_gives_the_defaults() {
        for text in [
            None,
            Some(""),
            Some("# nothing\n"),
            Some("builder_commands:\n"),
        ] {
            let config = Config::parse(text).unwrap();
            assert_eq!(
                (
                    config.src.as_str(),
                    config.tests.as_str(),
                    config.iterations
                ),
                ("src", ".abl/tests", 5)
            );
            assert!(config.builder_commands.is_empty());
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for bad in [
            "directories: 7\n",
            "loop: {max_verifier_iterations: 0}\n",
            "a: [1\n",
            "builder_commands: {get-spec: {command: x}}\n",
            "builder_commands: [{name: a, command: x}, {name: a, command: y}]\n",
            "builder_commands: npm run lint\n",
        ] {
            assert!(Config::parse(Some(bad)).is_err(), "{bad}");
        }
        let error = Config::parse(Some("loop: {}\nbuilder_commands:\n- name: lint\n")).unwrap_err();
        assert!(
            error.contains("missing field `command`") && error.contains("line 3"),
            "{error}"
        );
    }
}
