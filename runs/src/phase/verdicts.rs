//! `phase trust` and `phase reopen`: the user overrides whether a phase has passed.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use code_commit_engine::HoldsFor;
use code_commit_logging::Stamp;
use code_commit_names::ours::ABL;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::phase::folders::SPECS;
use crate::phase::project::Project;

/// What the user says about a phase, whatever the record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Override {
    /// It has passed: accepts a commit that says so, although this harness did not make it.
    Trust,
    /// It has not passed, whatever was recorded.
    Reopen,
}

/// Changes the state of a phase as the user says.
pub fn overrule(root: &Path, word: Override, phase: u32, host: Host<'_>) -> Result<Exit, Failure> {
    let (_lock, mut project) = Project::lock(root, host)?;
    if !project.specs.contains_key(&phase) {
        let error = anyhow!("there is no {SPECS}/phase{phase}.md");
        return Err(Failure::refused(error, "write the spec of that phase"));
    }
    let at = Stamp::now().rfc3339();
    let said = match word {
        Override::Trust if project.has_passed(phase) && project.moved_on(phase)?.is_none() => {
            format!("Phase {phase} has passed already.")
        }
        Override::Trust if !project.is_committed_as_passed(phase)? => {
            let error = anyhow!("no commit says that phase {phase} has passed");
            return Err(Failure::refused(
                error,
                format!("code-commit phase {phase} works on it"),
            ));
        }
        Override::Trust => {
            let tests = project.deciding_tests()?;
            let description = tests.as_ref().and(project.description.as_deref());
            let holding = project.holding(phase, description, tests.as_deref());
            let pass = HoldsFor {
                tree: project.source()?,
                ..holding
            };
            project.state.complete(phase, pass, tests, at);
            format!("Phase {phase} counts as passed, for the specs as they are now.")
        }
        Override::Reopen => {
            project.state.reopen(phase, at);
            format!("Phase {phase} is open again: code-commit phase run works on it.")
        }
    };
    let file = root.join(ABL).join(code_commit_loop_phase::STATE);
    code_commit_dir::replace(&file, project.state.to_json().as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;
    host.output.report(&said);
    host.output.object(&serde_json::json!({
        "event": "phase", "phase": phase, "passed": project.has_passed(phase),
    }));
    Ok(Exit::Done)
}
