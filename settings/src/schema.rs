//! The JSON schema of a configuration file, for editors.

use serde_json::Value;

use crate::Options;

/// The published schema.
pub fn schema() -> Value {
    schemars::schema_for!(Options).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_current() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../docs/schemas/code-commit.schema.json"
        );
        let now = format!("{:#}\n", schema());
        let published = std::fs::read_to_string(path).unwrap_or_default();
        let stale =
            "write it anew: code-commit config --schema > docs/schemas/code-commit.schema.json";
        assert!(published == now, "{stale}");
    }
}
