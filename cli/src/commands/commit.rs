//! The default loop (S1): `code-commit` without a command.

use anyhow::{Context as _, anyhow};
use llm::{ModelId, Provider};
use logging::Redactor;
use loop_commit::Inputs;
use repo::WorkTree;
use runner::Cancel;

use crate::args::RunArgs;
use crate::commands::run::{Prepared, perform};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::keys::{self, Keys};
use crate::models;
use crate::output::{Output, printable};
use crate::preflight::{self, CODE_ROLLUP, Missing, QUERY};

/// Of the files that are not committed so many are named.
const NAMED_FILES: usize = 5;

/// Asked when nothing else is said.
const DEFAULT_MODEL: &str = "gemini-3.8-flash";

/// Checks that everything is there, then runs the loop.
pub fn run(args: &RunArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    let tree = super::work_tree(&super::here()?)?;
    let keys = Keys::find(environment, tree.root());
    let redactor = Redactor::new(keys.exposed());
    output.strike_out(redactor.clone());
    let model: ModelId = args.model.as_deref().unwrap_or(DEFAULT_MODEL).parse().map_err(|error| {
        Failure::refused(anyhow::Error::from(error), "for example --model gemini-3.8-flash")
    })?;
    let inputs = preflight(&tree, &model, &keys)?;
    clean_enough(&tree, args.require_clean, output)?;
    let lock = super::lock(&tree, output)?;
    let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
    crate::interrupt::watch(&cancel)?;
    let model = models::open(&model, args.base_url.as_deref(), &keys, environment, args.timeout)?;
    perform(Prepared {
        tree: &tree,
        lock,
        inputs,
        model: &*model,
        args,
        environment,
        redactor,
        cancel,
        output,
        unconfined_if_need_be: false,
    })
    .map(|done| done.exit)
}

/// Everything that is missing, at once (S1 §The Initial Query, §Safety).
fn preflight(tree: &WorkTree, model: &ModelId, keys: &Keys) -> Result<Inputs, Failure> {
    let root = tree.root();
    let ignored = preflight::agent_config_is_ignored(root);
    let query = preflight::input(root, QUERY, &format!("write into {QUERY} what should change"));
    let codebase = preflight::input(root, CODE_ROLLUP, "make it with: code-commit rollup");
    let key = key_is_there(model, keys);
    let build = preflight::build_script(root);
    match (query, codebase) {
        (Ok(query), Ok(codebase)) if ignored.is_ok() && key.is_ok() && build.is_ok() => {
            Ok(Inputs { query: query.into(), codebase: codebase.into(), protected: protected_for_model() })
        }
        (query, codebase) => Err(refused(
            [ignored.err(), query.err(), codebase.err(), key.err(), build.err()]
                .into_iter()
                .flatten()
                .collect(),
        )),
    }
}

fn key_is_there(model: &ModelId, keys: &Keys) -> Result<(), Missing> {
    match model.provider {
        // Local servers want none; theirs is asked for by the service itself.
        Provider::Gemini if keys.of(model.provider).is_none() => {
            Err(Missing::new(format!("there is no key for {model}"), keys::remedy(model.provider)))
        }
        Provider::Gemini | Provider::OpenAi | Provider::Scripted | Provider::Recorded => Ok(()),
    }
}

fn refused(missing: Vec<Missing>) -> Failure {
    let what: Vec<String> = missing.iter().map(|m| m.what.clone()).collect();
    let remedies: Vec<String> = missing.into_iter().map(|m| m.remedy).collect();
    Failure::refused(anyhow!("{}", what.join("\n       ")), remedies.join("\n       "))
}

/// Changes that are not committed are named; they refuse the run only where that is asked for.
fn clean_enough(tree: &WorkTree, required: bool, output: &Output) -> Result<(), Failure> {
    let dirty = tree.dirty().map_err(|error| Failure::refused(error, "see what git status says"))?;
    if dirty.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = dirty.iter().take(NAMED_FILES).map(|path| printable(path)).collect();
    let more = dirty.len().saturating_sub(NAMED_FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!("not committed: {}{more}", named.join(", "));
    if required {
        return Err(Failure::refused(anyhow!(text), "commit or stash them, or leave --require-clean away"));
    }
    output.warn(&format!("{text}; code-commit undo will give back what is there now"));
    Ok(())
}

/// The protected set as the prompt lists it (S1 §Parsing the Response).
pub fn protected_for_model() -> Vec<String> {
    let names = guard::PROTECTED.iter().map(|name| {
        let path = name.pattern.trim_start_matches('/');
        match path.strip_suffix('/') {
            Some(folder) => format!("anything in the {folder} folder"),
            None if name.pattern.starts_with('/') => path.to_owned(),
            None => format!("any file named {path}"),
        }
    });
    let general = ["anything in a .git folder", "anything that .gitignore names"].map(str::to_owned);
    names.chain(general).collect()
}
