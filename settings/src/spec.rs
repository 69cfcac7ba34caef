//! `.cuggino.json`, the only place for its six settings (S4 §Configuration).

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

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
            serde_json::from_str(text).map_err(|e| e.to_string())?
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
    let names: Option<Vec<&str>> = names
        .map(|part| {
            if let Component::Normal(name) = part {
                name.to_str()
            } else {
                None
            }
        })
        .collect();
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
        invalid type: string "ten", expected u32 at line 1 column 23
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
