//! Everything to check before an order is carried out.

use std::path::Path;

use anyhow::anyhow;
use code_commit_guard::Guard;
use code_commit_logging::Redactor;
use code_commit_loop_order::{FieldProblem, Inputs, proposal_schema};
use code_commit_prompt::order::Context;
use code_commit_repo::Head;

use crate::commit::plan::form;
use crate::estimate::First;
use crate::exit::Failure;
use crate::host::Host;
use crate::order::files;
use crate::order::plan::OrderPlan;
use crate::order::preflight::{self, Read};
use crate::order::setting::{Order, Setting, spending_of};
use crate::order::unfinished::branch;

/// The preflight (S2 §6.1), the same for a new run and one that goes on; modifies nothing. Gives the guard, and what
/// is checked out.
pub(super) fn check(order: &Order<'_>) -> Result<(Guard, (String, Head)), Failure> {
    let (tree, git, read) = (order.site.tree()?, &order.git, &order.read);
    preflight::nameable([read.path.as_path(), tree.root(), &order.out])?;
    preflight::clean(tree, git)?;
    preflight::verification(tree.root())?;
    preflight::unlocked(git)?;
    if order.setting.terms.commit {
        preflight::identity(git)?;
    }
    let guard = preflight::guard(&order.site.trusted, read, order.setting.settings)?;
    can_begin(read, tree.root(), order.setting)?;
    let commit = git.commit_of("HEAD")?.ok_or_else(|| {
        Failure::refused(
            anyhow!("the repository has no commit yet"),
            "commit what is there first",
        )
    })?;
    Ok((guard, (commit, git.head()?)))
}

/// What a new run works on; completes its plan.
pub(super) fn anew(
    order: &Order<'_>,
    plan: &mut OrderPlan,
    (commit, head): (String, Head),
) -> Result<Inputs, Failure> {
    let (tree, read, setting) = (order.site.tree()?, &order.read, order.setting);
    let host = setting.host;
    host.output.note(&files::verification_line(tree.root()));
    files::warn_of_verification(&read.order, tree, host);
    (plan.repo_baseline_commit, plan.branch) = (commit, branch(head));
    plan.repo_tree_hash_before = order.tree_hash()?;
    let files = files::read(tree.root(), &read.order)
        .map_err(|problems| preflight::refused(&read.path, &problems))?;
    Ok(Inputs {
        order: read.order.clone(),
        work_order_path: read.path.display().to_string(),
        repo_path: tree.root().display().to_string(),
        baseline_commit: plan.repo_baseline_commit.clone(),
        tree_hash_before: plan.repo_tree_hash_before.clone(),
        run_id: plan.run_id(),
        max_attempts: plan.terms.max_attempts,
        commit: plan.terms.commit,
        allowed: files.allowed,
        context: files.context,
        form: form(setting.settings),
    })
}

/// Refuses to send a key.
pub(super) fn holds_no_key(inputs: &Inputs, redactor: &Redactor) -> Result<(), Failure> {
    if !redactor.finds_key(&inputs.first_prompt()) {
        return Ok(());
    }
    let error = anyhow!("the order or one of its context files holds an API key; nothing was sent");
    Err(Failure::refused(error, "take the key out of it"))
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
