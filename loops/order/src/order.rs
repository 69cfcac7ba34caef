//! A work order: its content and its rules (S2 §4.1).

use std::collections::{BTreeMap, BTreeSet};

use code_commit_engine::Condition;
use code_commit_parser::proposal::normalized_path;
use serde_json::Value;

use crate::fields::{FieldProblem, Fields, Numbered};
use crate::ids;

/// With more files, it would be a code base, not a context (S2 §4.1).
pub const MOST_CONTEXT_FILES: usize = 10;

/// A larger order is refused before it is parsed as JSON.
pub const MOST_ORDER_BYTES: usize = 1 << 20;

/// An order to fill in, with every field of S2 §4.1.
pub const TEMPLATE: &str = include_str!("template.json");

/// Fields that the seed does not have. Leaving one out is the same as setting it to null.
const OPTIONAL: [&str; 3] = ["max_cost", "preconditions", "postconditions"];

/// An order that satisfies every rule that can be checked without reading files.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkOrder {
    /// Its name.
    pub id: String,
    /// One line.
    pub title: String,
    /// What is wanted.
    pub intent: String,
    /// Relative paths, normalized; nothing else is written.
    pub allowed_files: Vec<String>,
    /// What must not be done, as words for the model.
    pub forbidden: Vec<String>,
    /// The commands that decide, in order; at least one.
    pub acceptance_commands: Vec<Command>,
    /// Files whose content is shown to the model; all of them are allowed files.
    pub context_files: Vec<String>,
    /// Anything else for the model.
    pub notes: Option<String>,
    /// The maximum cost of all model calls together, in US dollars.
    pub max_cost: Option<f64>,
    /// What must hold before the first attempt.
    pub preconditions: Vec<Condition>,
    /// What must hold after the acceptance commands.
    pub postconditions: Vec<Condition>,
    /// SHA-256 of the order as canonical JSON.
    pub hash: String,
}

/// A command string, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// As the order writes it.
    pub text: String,
    /// Program and arguments.
    pub argv: Vec<String>,
}

impl WorkOrder {
    /// Reads an order, or returns everything that is wrong with it.
    pub fn parse(json: &[u8]) -> Result<Self, Vec<FieldProblem>> {
        if json.len() > MOST_ORDER_BYTES {
            return Err(vec![FieldProblem::new(
                "",
                format!("the order is larger than {} MiB", MOST_ORDER_BYTES >> 20),
            )]);
        }
        let mut fields = Fields::of(json).map_err(|problem| vec![problem])?;
        let hash = hash(fields.values());
        let (id, title) = (line(&mut fields, "id"), line(&mut fields, "title"));
        let intent = fields.text("intent");
        let allowed_files = items(paths(&mut fields, "allowed_files"));
        let forbidden = items(fields.texts("forbidden"));
        let acceptance_commands = commands(&mut fields, "acceptance_commands");
        let context_files = paths(&mut fields, "context_files");
        let (notes, max_cost) = (fields.optional_text("notes"), max_cost(&mut fields));
        let preconditions = conditions(&mut fields, "preconditions");
        let postconditions = conditions(&mut fields, "postconditions");
        let lists = Lists {
            allowed_files: &allowed_files,
            acceptance_commands: &acceptance_commands,
            context_files: &context_files,
        };
        lists.check(&mut fields.problems);
        let order = Self {
            id,
            title,
            intent,
            allowed_files,
            forbidden,
            acceptance_commands,
            context_files: items(context_files),
            notes,
            max_cost,
            preconditions,
            postconditions,
            hash,
        };
        let problems = fields.finish();
        if problems.is_empty() {
            Ok(order)
        } else {
            Err(problems)
        }
    }

    /// Whether it wants what the template wants, whatever its other fields say: nobody has filled it in.
    pub fn is_template(&self) -> bool {
        Self::parse(TEMPLATE.as_bytes()).is_ok_and(|template| template.intent == self.intent)
    }

    pub(crate) fn acceptance_texts(&self) -> Vec<String> {
        self.acceptance_commands
            .iter()
            .map(|command| command.text.clone())
            .collect()
    }
}

/// The lists that must be contained in others.
struct Lists<'o> {
    allowed_files: &'o [String],
    acceptance_commands: &'o [Command],
    context_files: &'o Numbered<String>,
}

impl Lists<'_> {
    fn check(&self, problems: &mut Vec<FieldProblem>) {
        // Invalid fields have been reported already.
        let known: BTreeSet<String> = problems
            .iter()
            .map(|problem| problem.field.clone())
            .collect();
        let complained = |list: &str| {
            known
                .range(list.to_owned()..)
                .next()
                .is_some_and(|field| field.starts_with(list))
        };
        let is_empty = |list: &str, length: usize| length == 0 && !complained(list);
        let mut problem = |field: &str, message: &str| {
            if !known.contains(field) {
                problems.push(FieldProblem::new(field, message));
            }
        };
        if is_empty("allowed_files", self.allowed_files.len()) {
            problem("allowed_files", "is empty, so nothing could be written");
        }
        if is_empty("acceptance_commands", self.acceptance_commands.len()) {
            problem(
                "acceptance_commands",
                "is empty, so nothing could be accepted",
            );
        }
        if self.context_files.len() > MOST_CONTEXT_FILES {
            let count = self.context_files.len();
            problem(
                "context_files",
                &format!("has {count} files, more than the {MOST_CONTEXT_FILES} allowed"),
            );
        }
        let allowed: BTreeSet<&String> = self.allowed_files.iter().collect();
        for (at, path) in self.context_files {
            if !known.contains("allowed_files") && !allowed.contains(path) {
                problem(
                    &format!("context_files[{at}]"),
                    "is not among the allowed_files",
                );
            }
        }
    }
}

/// A missing `notes` counts as null, as in the schema; missing fields that the seed does not have
/// are left out.
fn hash(fields: &BTreeMap<String, Value>) -> String {
    let mut counted = fields.clone();
    counted.retain(|field, value| !(value.is_null() && OPTIONAL.contains(&field.as_str())));
    counted.entry("notes".to_owned()).or_insert(Value::Null);
    ids::order_hash(&counted)
}

/// A single line: it appears in messages and as the first line of a commit message.
fn line(fields: &mut Fields, field: &str) -> String {
    let text = fields.text(field);
    if text.chars().any(char::is_control) {
        fields.problems.push(FieldProblem::new(
            field,
            "has a control character; give one line of plain text",
        ));
    }
    text
}

fn items<T>(numbered: Numbered<T>) -> Vec<T> {
    numbered.into_iter().map(|(_, item)| item).collect()
}

fn paths(fields: &mut Fields, field: &str) -> Numbered<String> {
    let mut paths = Numbered::new();
    let mut seen = BTreeSet::new();
    for (at, path) in fields.texts(field) {
        let normal = normalized_path(&path);
        let is_new = seen.insert(normal.clone());
        let fault = fault_of_path(&path).or((!is_new).then_some("is in the list twice"));
        if let Some(message) = fault {
            fields
                .problems
                .push(FieldProblem::new(format!("{field}[{at}]"), message));
        }
        paths.push((at, normal));
    }
    paths
}

fn commands(fields: &mut Fields, field: &str) -> Vec<Command> {
    let mut commands = Vec::new();
    for (at, text) in fields.texts(field) {
        match code_commit_parser::words::split_command(&text) {
            Ok(argv) => commands.push(Command { text, argv }),
            Err(error) => {
                fields.problems.push(FieldProblem::new(
                    format!("{field}[{at}]"),
                    error.to_string(),
                ));
            }
        }
    }
    commands
}

fn conditions(fields: &mut Fields, field: &str) -> Vec<Condition> {
    let Some(value) = fields.optional(field) else {
        return Vec::new();
    };
    let wanted = r#"a list of {"file_exists": PATH} and {"file_absent": PATH}"#;
    let Ok(conditions) = serde_json::from_value::<Vec<Condition>>(value) else {
        fields.wrong(field, wanted);
        return Vec::new();
    };
    for (at, condition) in conditions.iter().enumerate() {
        let (Condition::FileExists(path) | Condition::FileAbsent(path)) = condition;
        if let Some(message) = fault_of_path(path) {
            fields
                .problems
                .push(FieldProblem::new(format!("{field}[{at}]"), message));
        }
    }
    conditions
}

fn max_cost(fields: &mut Fields) -> Option<f64> {
    let value = fields.optional("max_cost")?;
    let cost = value
        .as_f64()
        .filter(|cost| cost.is_finite() && *cost >= 0.0);
    if cost.is_none() {
        fields.wrong("max_cost", "an amount of US dollars, 0 or more");
    }
    cost
}

fn fault_of_path(path: &str) -> Option<&'static str> {
    let drive =
        path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && path.get(1..2) == Some(":");
    let faults = [
        (matches!(&*normalized_path(path), "" | "/"), "names no file"),
        (
            path.starts_with('/'),
            "is an absolute path; give it relative to the repository",
        ),
        (
            drive,
            "has a drive letter; give it relative to the repository",
        ),
        (
            path.split('/').any(|part| part == ".."),
            "has a `..` component",
        ),
        (
            path.contains('\\'),
            "has a backslash; separate folders with `/`",
        ),
        (path.ends_with('/'), "names a folder; name each file"),
        (path.contains(['*', '?']), "is a pattern; name each file"),
        (
            path.chars().any(char::is_control),
            "has a control character",
        ),
    ];
    faults
        .into_iter()
        .find(|(is_fault, _)| *is_fault)
        .map(|(_, message)| message)
}

#[cfg(test)]
mod tests;
