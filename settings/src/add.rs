//! Adds settings to the user's own file, and leaves everything else in it as it is.

use std::io;
use std::path::PathBuf;

use toml_edit::{DocumentMut, Item, Table, TomlError};

use crate::files::users_file;
use crate::read::read;
use crate::{Environment, ReadError};

/// Why settings cannot be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum AddError {
    #[error("there is no home directory")]
    NoHome,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("the settings are no table with values")]
    NoSettings(#[from] TomlError),
}

/// Adds values of one table, such as `readable = ["/etc/php"]` of `sandbox`, to the user's file; gives its path. Lists
/// grow by what they do not have yet, other values are replaced.
pub fn add_for_user(
    environment: &Environment,
    table: &str,
    values: &str,
) -> Result<PathBuf, AddError> {
    let path = users_file(environment).ok_or(AddError::NoHome)?;
    // Nothing is added to a file that could not be read again.
    let text = read(&path)?.map(|file| file.text).unwrap_or_default();
    let write = |text: String| {
        code_commit_dir::replace(&path, text.as_bytes()).map_err(|source| AddError::Write {
            path: path.clone(),
            source,
        })
    };
    write(added(&text, table, values)?)?;
    Ok(path)
}

fn added(text: &str, table: &str, values: &str) -> Result<String, TomlError> {
    let mut file: DocumentMut = text.parse()?;
    let values: DocumentMut = values.parse()?;
    let own = file.entry(table).or_insert(Item::Table(Table::new()));
    for (key, value) in values.iter() {
        match (
            own.get_mut(key).and_then(Item::as_array_mut),
            value.as_array(),
        ) {
            (Some(list), Some(more)) => {
                let has = |list: &toml_edit::Array, new: &toml_edit::Value| {
                    list.iter()
                        .any(|known| known.as_str().is_some() && known.as_str() == new.as_str())
                };
                for new in more {
                    if !has(list, new) {
                        let space = if list.is_empty() { "" } else { " " };
                        list.push_formatted(new.clone().decorated(space, ""));
                    }
                }
            }
            _ => {
                if let Some(own) = own.as_table_like_mut() {
                    own.insert(key, value.clone());
                }
            }
        }
    }
    Ok(file.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_grow_and_what_a_person_wrote_stays() {
        let added = |text: &str, values: &str| added(text, "sandbox", values).unwrap();
        assert_eq!(
            added("", "readable = [\"/etc/php\"]"),
            "[sandbox]\nreadable = [\"/etc/php\"]\n"
        );
        let own = "# mine\n[sandbox]\nreadable = [\"/a\"] # why\nnetwork = false\n\n[model]\nname = \"m\"\n";
        insta::assert_snapshot!(added(own, "readable = [\"/a\", \"/b\"]\nhosts = [\"h\"]"), @r#"
        # mine
        [sandbox]
        readable = ["/a", "/b"] # why
        network = false
        hosts = ["h"]

        [model]
        name = "m"
        "#);
        assert_eq!(
            added("sandbox = { env = [\"A\"] }\n", "env = [\"B\"]"),
            "sandbox = { env = [\"A\", \"B\"] }\n"
        );
    }
}
