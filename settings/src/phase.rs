//! `.abl/abl.config.yaml`, in the format of S3's own projects. Every key may be left out.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

const DEFAULT_MODEL: &str = "gemini-3.8-flash";

/// The file. Unknown keys are ignored, because another program shares the file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct File {
    directories: Option<Directories>,
    models: Option<Models>,
    builder_commands: Option<Commands>,
    verifier_commands: Option<Commands>,
    #[serde(rename = "loop")]
    limits: Option<Limits>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Directories {
    src: Option<String>,
    tests: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Models {
    builder: Option<String>,
    verifier: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
struct Command {
    command: String,
    #[serde(default)]
    description: Option<String>,
}

/// Commands by name: a map, or a list whose entries have a `name`.
#[derive(Debug, Clone, Default, PartialEq)]
struct Commands(Vec<(String, Command)>);

#[derive(Deserialize)]
struct Named {
    name: String,
    command: String,
    #[serde(default)]
    description: Option<String>,
}

impl<'de> Deserialize<'de> for Commands {
    fn deserialize<D: Deserializer<'de>>(file: D) -> Result<Self, D::Error> {
        file.deserialize_any(Commands::default())
    }
}

/// Not an untagged enum, whose errors say neither what is wrong nor where.
impl<'de> Visitor<'de> for Commands {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("commands by name, or a list of commands that have a name")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(entry) = map.next_entry()? {
            self.0.push(entry);
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self, A::Error> {
        while let Some(Named {
            name,
            command,
            description,
        }) = list.next_element()?
        {
            self.0.push((
                name,
                Command {
                    command,
                    description,
                },
            ));
        }
        Ok(self)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Limits {
    max_verifier_iterations: Option<u32>,
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

/// A command of the configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Entry {
    /// The shell line; no role ever sees it.
    pub command: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
}

impl Config {
    /// Reads the file's text; `None` for a project without the file. Errors say where.
    pub fn parse(text: Option<&str>) -> Result<Self, String> {
        let file: File = match text.filter(|text| has_content(text)) {
            Some(text) => serde_saphyr::from_str(text).map_err(|error| error.to_string())?,
            None => File::default(),
        };
        let (folders, models) = (
            file.directories.unwrap_or_default(),
            file.models.unwrap_or_default(),
        );
        let given = |value: Option<String>, default: &str| {
            value
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
                .unwrap_or(default.to_owned())
        };
        let iterations = file
            .limits
            .and_then(|limits| limits.max_verifier_iterations)
            .unwrap_or(5);
        if iterations == 0 {
            return Err("loop.max_verifier_iterations must be at least 1".to_owned());
        }
        Ok(Self {
            src: given(folders.src, "src"),
            tests: given(folders.tests, ".abl/tests"),
            builder_model: given(models.builder, DEFAULT_MODEL),
            verifier_model: given(models.verifier, DEFAULT_MODEL),
            builder_commands: entries(file.builder_commands)?,
            verifier_commands: entries(file.verifier_commands)?,
            iterations,
        })
    }
}

/// Whether there is anything but comments.
fn has_content(text: &str) -> bool {
    text.lines()
        .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

fn entries(commands: Option<Commands>) -> Result<BTreeMap<String, Entry>, String> {
    let mut entries = BTreeMap::new();
    for (name, of) in commands.unwrap_or_default().0 {
        let plain = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'));
        if !plain || name == "get-spec" {
            return Err(format!("`{name}` cannot be the name of a command"));
        }
        let entry = Entry {
            command: of.command,
            description: of.description.unwrap_or_default(),
        };
        if entries.insert(name.clone(), entry).is_some() {
            return Err(format!("there are two commands named `{name}`"));
        }
    }
    Ok(entries)
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
