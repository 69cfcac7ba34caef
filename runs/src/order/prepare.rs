//! Everything to check, and the little to clean up, before an order is carried out.

use std::path::Path;
use std::rc::Rc;

use anyhow::anyhow;
use code_commit_guard::Guard;
use code_commit_loop_order::{FieldProblem, Inputs, proposal_schema, run_id};
use code_commit_prompt::order::Context;
use code_commit_repo::{Git, Head, WorkTree};

use crate::commit::plan::form;
use crate::estimate::First;
use crate::exit::Failure;
use crate::host::Host;
use crate::order::files;
use crate::order::preflight::{self, Read};
use crate::order::setting::{Setting, spending_of};
use crate::order::unfinished::{Unfinished, branch};
use crate::records;
use crate::site::Site;

/// An order that can be carried out.
pub(super) struct Prepared {
    pub read: Read,
    pub guard: Rc<Guard>,
    pub unfinished: Unfinished,
    pub inputs: Inputs,
}

/// The preflight (S2 §6.1); modifies nothing. `unfinished` is the run that the tree was in the middle of.
pub(super) fn prepare(
    read: Read,
    setting: &Setting<'_>,
    site: &Site<'_>,
    git: &Git,
    unfinished: Option<Unfinished>,
) -> Result<Prepared, Failure> {
    let tree = site.tree()?;
    let Setting {
        terms,
        settings,
        host,
        ..
    } = *setting;
    let out = match setting.going_on {
        // It is where the record is.
        Some(_) => setting.out.to_owned(),
        None => preflight::out(setting.out, tree.root())?,
    };
    preflight::nameable([read.path.as_path(), tree.root(), &out])?;
    let known =
        unfinished.filter(|run| !setting.new && run.is_of(&read.order.hash, &terms.hash(), &out));
    preflight::clean(tree, git)?;
    preflight::verification(tree.root())?;
    preflight::unlocked(git)?;
    if terms.commit {
        preflight::identity(git)?;
    }
    let guard = preflight::guard(&site.trusted, &read, settings)?;
    let commit = git.commit_of("HEAD")?.ok_or_else(|| {
        Failure::refused(
            anyhow!("the repository has no commit yet"),
            "commit what is there first",
        )
    })?;
    let head = git.head()?;
    let unfinished = match known {
        Some(known) => Unfinished {
            branch: branch(head),
            ..known
        },
        None => {
            can_begin(&read, tree.root(), setting)?;
            host.output.note(&files::verification_line(tree.root()));
            files::warn_of_verification(&read.order, tree, host);
            anew(&read, tree, &out, (commit, head), setting)?
        }
    };
    setting.goes_on_with(&unfinished.run)?;
    let inputs = inputs(&read, tree, &unfinished, setting)?;
    if setting.redactor.finds_key(&inputs.first_prompt()) {
        let error =
            anyhow!("the order or one of its context files holds an API key; nothing was sent");
        return Err(Failure::refused(error, "take the key out of it"));
    }
    Ok(Prepared {
        read,
        guard: guard.into(),
        unfinished,
        inputs,
    })
}

pub(super) fn first(inputs: &Inputs) -> First<'_> {
    let size = |file: &Context| file.text.as_ref().map_or(0, String::len);
    First {
        prompt: inputs.first_prompt(),
        schema: Some(proposal_schema(inputs.form)),
        files: inputs
            .context
            .iter()
            .map(|file| (file.path.as_str(), size(file)))
            .collect(),
        remedy: "name fewer or smaller files in context_files",
    }
}

/// Problems that would end every run of this order, found before the first.
pub(super) fn can_begin(read: &Read, root: &Path, setting: &Setting<'_>) -> Result<(), Failure> {
    let Setting {
        settings,
        host: Host { environment, .. },
        ..
    } = *setting;
    let mut problems = files::unfit(&read.order, root, environment);
    let spending = spending_of(read.order.max_cost, settings);
    let price = settings
        .all_models()
        .into_iter()
        .try_for_each(|model| spending.keeps_cost(model));
    problems.extend(price.err().map(|error| FieldProblem {
        field: "max_cost".to_owned(),
        message: error.to_string(),
    }));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(preflight::refused(&read.path, &problems))
    }
}

/// A new run, named after its inputs.
fn anew(
    read: &Read,
    tree: &WorkTree,
    out: &Path,
    at: (String, Head),
    setting: &Setting<'_>,
) -> Result<Unfinished, Failure> {
    let config_hash = setting.terms.hash();
    let tree_hash =
        code_commit_repo::stable_hash(tree.root(), code_commit_dir::NEVER).map_err(|error| {
            Failure::refused(error, "every file of the repository must be readable")
        })?;
    let id = run_id(&read.order.hash, &tree_hash, &config_hash);
    // Where another clone has the first name, that of the run goes on.
    let is_its = |run: &&Path| {
        records::name(run)
            .strip_prefix(&id)
            .is_some_and(|rest| !rest.starts_with(|c| c != '-'))
    };
    let run = setting
        .going_on
        .filter(is_its)
        .map_or_else(|| out.join(&id), Path::to_owned);
    Ok(Unfinished::new(
        run,
        &read.order.hash,
        &config_hash,
        tree_hash,
        at,
    ))
}

fn inputs(
    read: &Read,
    tree: &WorkTree,
    run: &Unfinished,
    setting: &Setting<'_>,
) -> Result<Inputs, Failure> {
    let terms = setting.terms;
    let files = files::read(tree.root(), &read.order)
        .map_err(|problems| preflight::refused(&read.path, &problems))?;
    Ok(Inputs {
        order: read.order.clone(),
        work_order_path: read.path.display().to_string(),
        repo_path: tree.root().display().to_string(),
        baseline_commit: run.commit.clone(),
        tree_hash_before: run.tree_hash_before.clone(),
        run_id: run_id(
            &run.work_order_hash,
            &run.tree_hash_before,
            &run.config_hash,
        ),
        max_attempts: terms.max_attempts,
        commit: terms.commit,
        allowed: files.allowed,
        context: files.context,
        form: form(setting.settings),
    })
}
