//! `code-commit config`: every setting in force, and its origin.

use code_commit_report::{DIM, Output, printable};
use code_commit_runs::{Exit, Failure, Host};
use code_commit_settings::{Files, Keys, SCHEMA, Standing};
use serde_json::json;

use crate::args::ConfigArgs;

/// Prints the settings that a run with these flags would use.
pub fn run(args: &ConfigArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let (environment, output) = (host.environment, host.output);
    if args.schema {
        output.object(&serde_json::from_str(SCHEMA).unwrap_or_default());
        if !output.json {
            output.raw(SCHEMA.as_bytes());
        }
        return Ok(Exit::Done);
    }
    let root = host.root()?;
    output.strike_out(Keys::find(environment, &root).exposed());
    let files = Files::read(&root, environment)?;
    print_files(&files, output);
    let loaded = files.settings(environment, &args.settings.layer);
    for row in loaded.settings.rows() {
        output.object(
            &json!({ "key": row.key, "value": row.value, "origin": row.origin.to_string() }),
        );
        let origin = output.paint(DIM, &row.origin.to_string());
        output.report(&format!(
            "{:<27} {}  {origin}",
            row.key,
            printable(&row.text())
        ));
    }
    for what in &loaded.ignored {
        output.warn(&files.why_ignored(what));
    }
    Ok(Exit::Done)
}

fn print_files(files: &Files, output: &Output) {
    let trust = match files.standing {
        Standing::Trusted => "trusted",
        Standing::Changed => "changed since it was trusted",
        Standing::Unknown => "not trusted",
    };
    for (whose, file, note) in [
        ("user", &files.user, ""),
        ("project", &files.project, trust),
    ] {
        let path = file.as_ref().map(|file| file.path.display().to_string());
        output
            .object(&json!({ "file": whose, "path": path, "trust": file.as_ref().map(|_| note) }));
        output.report(&match (path, note) {
            (None, _) => format!("{whose} file: none"),
            (Some(path), "") => format!("{whose} file: {}", printable(&path)),
            (Some(path), note) => format!("{whose} file: {} ({note})", printable(&path)),
        });
    }
}
