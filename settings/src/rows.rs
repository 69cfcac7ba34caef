//! Every setting as `code-commit config` shows it.

use std::path::Path;

use serde_json::{Value, json};

use crate::{CommitScope, Origin, Setting, Settings, Size, Time};

/// One setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As it is written in a file: table, dot, key.
    pub key: &'static str,
    /// Null where it is not set.
    pub value: Value,
    /// Where it is from.
    pub origin: Origin,
}

impl Row {
    fn new<T>(key: &'static str, setting: &Setting<T>, value: impl FnOnce(&T) -> Value) -> Self {
        Self { key, value: value(&setting.value), origin: setting.origin }
    }

    /// The value for eyes.
    pub fn text(&self) -> String {
        match &self.value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => self.value.to_string(),
        }
    }
}

impl Settings {
    /// All of them, in the order of the reference. A list that several layers add to has a row for each entry.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let protect = self.protect.iter().flat_map(|list| {
            list.value.iter().map(|pattern| Setting { value: pattern.clone(), origin: list.origin })
        });
        list(&mut rows, "protect", &protect.collect::<Vec<_>>(), |pattern| json!(pattern));
        rows.extend(self.model_rows());
        rows.extend(self.limit_rows());
        rows.extend([
            Row::new("build.command", &self.build, |command| json!(command.text)),
            Row::new("build.timeout", &self.build_timeout, time),
            Row::new("build.output_limit", &self.build_output, |bytes| size(*bytes)),
            Row::new("build.prompt_limit", &self.build_prompt, |bytes| size(*bytes)),
            Row::new("sandbox.mode", &self.sandbox, |mode| json!(mode.as_str())),
            Row::new("sandbox.network", &self.network, |on| json!(on)),
        ]);
        list(&mut rows, "sandbox.writable", &self.writable, |path| shown(path));
        list(&mut rows, "sandbox.readable", &self.readable, |path| shown(path));
        list(&mut rows, "sandbox.env", &self.env, |name| json!(name));
        list(&mut rows, "price", &self.prices, |price| json!(price.prefix));
        rows.extend([
            Row::new("spec.commit_scope", &self.commit_scope, |scope| json!(scope.map(CommitScope::as_str))),
            Row::new("spec.notify", &self.notify, |command| {
                json!(command.as_ref().map(|command| &command.text))
            }),
        ]);
        rows
    }

    fn model_rows(&self) -> [Row; 8] {
        [
            Row::new("model.name", &self.model, |model| json!(model.to_string())),
            Row::new("model.base_url", &self.base_url, |url| json!(url)),
            Row::new("model.temperature", &self.temperature, |value| json!(value)),
            Row::new("model.stream", &self.stream, |on| json!(on)),
            Row::new("model.timeout", &self.timeout, time),
            Row::new("model.dialect.max_tokens", &self.dialect, |dialect| json!(dialect.max_tokens)),
            Row::new("model.dialect.system_role", &self.dialect, |dialect| json!(dialect.system_role)),
            Row::new("model.dialect.schema", &self.dialect, |dialect| json!(dialect.schema)),
        ]
    }

    fn limit_rows(&self) -> [Row; 5] {
        [
            Row::new("limits.max_cost", &self.max_cost, |cost| json!(cost.map(llm::Money::as_usd))),
            Row::new("limits.max_tokens", &self.max_tokens, |count| json!(count)),
            Row::new("limits.max_calls", &self.max_calls, |count| json!(count)),
            Row::new("limits.max_time", &self.max_time, |limit| limit.as_ref().map_or(Value::Null, time)),
            Row::new("limits.rounds", &self.rounds, |count| json!(count)),
        ]
    }
}

/// A row for each entry, or one that says that there is none.
fn list<T>(rows: &mut Vec<Row>, key: &'static str, entries: &[Setting<T>], value: impl Fn(&T) -> Value) {
    if entries.is_empty() {
        rows.push(Row { key, value: Value::Null, origin: Origin::Default });
    }
    rows.extend(entries.iter().map(|entry| Row::new(key, entry, &value)));
}

fn time(time: &std::time::Duration) -> Value {
    json!(Time(*time).to_string())
}

fn size(bytes: u64) -> Value {
    json!(Size(bytes).to_string())
}

fn shown(path: &Path) -> Value {
    json!(path.display().to_string())
}
