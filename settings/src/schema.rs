//! The JSON schema of a configuration file, for editors.

/// The schema, as JSON text.
pub const SCHEMA: &str = include_str!("../code-commit.schema.json");

#[cfg(test)]
pub(crate) mod tests {
    use schemars::{Schema, SchemaGenerator, json_schema};

    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever runs it may want a new one"
    )]
    fn the_schema_is_current() {
        let now = format!("{:#}\n", schemars::schema_for!(crate::Options).to_value());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/code-commit.schema.json");
        if std::env::var_os("SCHEMA_UPDATE").is_some() {
            let path = std::path::Path::new(path);
            code_commit_dir::replace(path, now.as_bytes()).unwrap();
        } else {
            assert!(
                SCHEMA == now,
                "write it anew: SCHEMA_UPDATE=1 cargo test -p code-commit-settings schema"
            );
        }
    }

    /// US dollars for a million tokens.
    pub(crate) fn prices(_: &mut SchemaGenerator) -> Schema {
        let dollars = || json_schema!({ "type": "number", "minimum": 0 });
        json_schema!({
            "type": "array",
            "items": {
                "type": "object",
                "required": ["prefix", "input", "output"],
                "additionalProperties": false,
                "properties": {
                    "prefix": { "type": "string" },
                    "until": { "type": "string", "format": "date" },
                    "input": dollars(), "cached": dollars(), "cache_write": dollars(), "output": dollars(),
                    "priority": { "type": "number", "minimum": 0 },
                    "max_output": { "type": "integer", "minimum": 1 },
                    "window": { "type": "integer", "minimum": 1 },
                    "long": {
                        "type": "object",
                        "required": ["above", "input", "output"],
                        "additionalProperties": false,
                        "properties": {
                            "above": { "type": "integer", "minimum": 1 },
                            "input": dollars(), "cached": dollars(), "cache_write": dollars(), "output": dollars(),
                        },
                    },
                },
            },
        })
    }
}
