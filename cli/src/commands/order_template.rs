//! `code-commit order new`: a template for an order.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use code_commit_guard::{Configuration, Surroundings};
use code_commit_loop_order::TEMPLATE;
use code_commit_report::Output;
use code_commit_runs::{Exit, Failure, place};

use crate::args::order::NewArgs;
use crate::commands::init::create;

/// Writes it, unless the file exists.
pub fn run(args: &NewArgs, output: &Output) -> Result<Exit, Failure> {
    if args.file == Path::new("-") {
        print(output)?;
        return Ok(Exit::Done);
    }
    let shown = args.file.display().to_string();
    let made = create(&args.file, TEMPLATE, 0o666)
        .with_context(|| format!("cannot write {shown}"))
        .map_err(|error| {
            Failure::refused(
                error,
                "name a file in a folder that exists and that you can write",
            )
        })?;
    if !made {
        let error = anyhow!("{shown} already exists");
        return Err(Failure::refused(error, "name another file"));
    }
    output.report(&format!(
        "wrote {shown}; fill it in, then: code-commit order check {shown}"
    ));
    output.object(&serde_json::json!({ "event": "wrote", "file": shown }));
    if makes_the_tree_dirty(&args.file) {
        output.note(
            "order run wants a clean work tree: commit the order first, or move it out of there",
        );
    }
    Ok(Exit::Done)
}

/// Prints the text unchanged; with `--json` on one line.
fn print(output: &Output) -> Result<(), Failure> {
    if output.json {
        output.object(&serde_json::from_str(TEMPLATE).context("the template is not JSON")?);
    } else {
        output.raw(TEMPLATE.as_bytes());
    }
    Ok(())
}

/// Whether the file, which is new, lies in the project and is not ignored.
fn makes_the_tree_dirty(file: &Path) -> bool {
    let (Ok(tree), Ok(file)) = (place::work_tree(Path::new(".")), file.canonicalize()) else {
        return false;
    };
    let around = Surroundings::find(tree.root(), Configuration::All);
    let path = file.strip_prefix(tree.root()).ok().and_then(Path::to_str);
    path.is_some_and(|path| {
        around.is_ok_and(|around| around.ignores(path).is_ok_and(|ignored| !ignored))
    })
}
