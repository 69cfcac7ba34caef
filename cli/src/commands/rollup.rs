//! `code-commit rollup`: writes the tracked files as one text for the model.

use anyhow::anyhow;
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_prompt::rollup::files;
use code_commit_report::{Output, phrases, printable_name};
use code_commit_runs::preflight::{CODE_ROLLUP, QUERY};
use code_commit_runs::rollup::{self, Chosen, Options, RollUp, Sources};
use code_commit_runs::{Exit, Failure, Host, config, place, preflight};
use code_commit_settings::{self as settings, Keys, Settings};
use serde_json::json;

use crate::args::RollupArgs;

/// Writes the roll-up, and reports what it contains and omits.
pub fn run(args: &RollupArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let (environment, output) = (host.environment, host.output);
    let tree = place::work_tree(host.here()?)?;
    if let Some(elsewhere) = preflight::project_above(&tree) {
        return Err(elsewhere.into());
    }
    preflight::own_or_absent(tree.root())
        .map_err(|link| Failure::refused(anyhow!(link.what), link.hint))?;
    let redactor = output.strike_out(Keys::find(environment, tree.root()).exposed());
    let settings = config::load(tree.root(), &settings::Options::default(), host)?;
    let options = options(args, &settings);
    // Without a query, nothing is more important than what was changed lately.
    let query = preflight::input(tree.root(), QUERY, "").unwrap_or_default();
    // Without an index, it takes longer.
    let state = tree.state_place().ok();
    let sources = Sources {
        tree: &tree,
        environment,
        redactor: &redactor,
        query: &query,
        state: state.as_deref(),
    };
    let rollup = rollup::make(sources, &options, &settings)?;
    if let Some(missing) = rollup.empty() {
        rollup.tell(output);
        return Err(missing.into());
    }
    rollup
        .keep(tree.root(), &options)
        .map_err(|error| Failure::refused(error, format!("make {AGENT_CONFIG} a folder that you can write, without a folder named codeRollup.txt")))?;
    output.report(&format!("{CODE_ROLLUP}: {}", rollup.size()));
    if args.explain {
        explain(&rollup, output);
    }
    rollup.tell(output);
    let left_out = rollup
        .left_out
        .iter()
        .map(|(path, why)| (path.clone(), why.reason()));
    let links = rollup.links.iter().map(|path| (path.clone(), "a symlink"));
    let odd = rollup
        .odd_names()
        .into_iter()
        .map(|path| (path, "its name is not UTF-8"));
    output.object(&json!({
        "files": rollup.files, "bytes": rollup.text.len(),
        "chosen": chosen(args, &rollup), "left_out": left_out.chain(links).chain(odd)
            .map(|(path, reason)| json!({ "path": path, "reason": reason })).collect::<Vec<_>>(),
    }));
    Ok(Exit::Done)
}

/// Flags add patterns to those of the configuration, and replace its budget.
fn options(args: &RollupArgs, settings: &Settings) -> Options {
    let mut options = Options::of(settings);
    options
        .include
        .extend(args.include.iter().map(|pattern| pattern.0.clone()));
    options
        .exclude
        .extend(args.exclude.iter().map(|pattern| pattern.0.clone()));
    options.budget = args.budget.or(options.budget);
    options
}

/// What is shown of which file; where all of it fits only if somebody asks.
fn chosen(args: &RollupArgs, rollup: &RollUp) -> Vec<Chosen> {
    if !(rollup.chosen.is_empty() && args.explain) {
        return rollup.chosen.clone();
    }
    files(&rollup.text)
        .map(|(path, text)| Chosen::of_all(path, text))
        .collect()
}

fn explain(rollup: &RollUp, output: &Output) {
    if rollup.chosen.is_empty() {
        output.note("all selected files fit the budget");
    }
    for Chosen {
        path,
        form,
        why,
        tokens,
    } in &rollup.chosen
    {
        let tokens = phrases::count(*tokens, "token");
        output.note(&format!(
            "shown: {} ({form}, {why}, {tokens})",
            printable_name(path)
        ));
    }
}
