//! `code-commit rollup`: writes the tracked files as one text for the model.

use anyhow::anyhow;
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_prompt::rollup::files;
use code_commit_report::{Output, phrases, printable_name};
use code_commit_runs::preflight::{CODE_ROLLUP, Missing, QUERY};
use code_commit_runs::rollup::{self, Chosen, Options, RollUp, Sources};
use code_commit_runs::{Exit, Failure, Host, place, preflight};
use code_commit_settings::{Keys, Layer, Settings};
use serde_json::json;

use crate::args::RollupArgs;

/// Writes the roll-up, and reports what it contains and omits.
pub fn run(args: &RollupArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    let tree = place::work_tree(host.here()?)?;
    preflight::own_or_absent(tree.root())
        .map_err(|link| Failure::refused(anyhow!(link.what), link.hint))?;
    let redactor = output.strike_out(Keys::find(environment, tree.root()).exposed());
    let settings = code_commit_runs::config::load(tree.root(), Layer::default(), host)?;
    let options = options(args, &settings);
    // Without a query, nothing is more important than what was changed lately.
    let query = preflight::input(tree.root(), QUERY, "").unwrap_or_default();
    let sources = Sources {
        tree: &tree,
        environment,
        redactor: &redactor,
        query: &query,
    };
    let rollup = rollup::make_within(sources, &options, &settings)?;
    rollup
        .keep(tree.root(), &options)
        .map_err(|error| Failure::refused(error, format!("make {AGENT_CONFIG} writable")))?;
    output.report(&format!("{CODE_ROLLUP}: {}", rollup.size()));
    if args.explain {
        explain(&rollup, output);
    }
    rollup.tell(output);
    if let Some(Missing { what, hint }) = rollup.empty() {
        output.warn(&format!("{what}, so the model would see none: {hint}"));
    }
    let left_out = rollup
        .left_out
        .iter()
        .map(|(path, why)| (path.clone(), why.reason()));
    let links = rollup
        .besides
        .links
        .iter()
        .map(|path| (path.clone(), "a symlink"));
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
    let Options {
        mut include,
        mut exclude,
        budget,
    } = Options::of(settings);
    include.extend(args.include.iter().cloned());
    exclude.extend(args.exclude.iter().cloned());
    Options {
        include,
        exclude,
        budget: args.budget.or(budget),
    }
}

/// What is shown of which file; without a budget only if somebody asks.
fn chosen(args: &RollupArgs, rollup: &RollUp) -> Vec<Chosen> {
    if !(rollup.chosen.is_empty() && args.explain) {
        return rollup.chosen.clone();
    }
    files(&rollup.text)
        .map(|(path, text)| Chosen::without_budget(path, text))
        .collect()
}

fn explain(rollup: &RollUp, output: &Output) {
    if rollup.chosen.is_empty() {
        output.note("every file that is not left out is shown: there is no budget");
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
