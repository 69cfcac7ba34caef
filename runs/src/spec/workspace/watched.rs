//! Who may touch what.

use std::path::Path;

use code_commit_loop_spec::{BACKLOG, Files, ISSUES, MEMORY, Role, STORE, TBD, asks_to_change};
use code_commit_names::By;
use code_commit_names::ours::{AGENT_CONFIG, PROJECT_FILE, SPEC_CONFIG, STATE};
use code_commit_perform::Watched;
use code_commit_repo::WorkTree;
use code_commit_report::printable;

use crate::agents;
use crate::spec::workspace::Workspace;

/// What no agent may change, whatever its role.
fn ours() -> impl Iterator<Item = String> {
    let folders = [STORE, STATE, AGENT_CONFIG].map(|name| format!("!{name}/"));
    folders
        .into_iter()
        .chain([SPEC_CONFIG, PROJECT_FILE].map(|name| format!("!{name}")))
}

/// What a person is told of a change that was restored. Only who implements can be asked for one of the specs.
pub(crate) fn put_back(path: &str, role: &str, specs: &str) -> String {
    let shown = printable(path);
    let told = format!("{shown} may not be changed by the {role} agent: it was restored");
    if role == Role::Implementing.name() && Path::new(path).starts_with(specs) {
        return format!("{told}; ask for it in the focus: `Update {shown}`");
    }
    told
}

impl Workspace<'_> {
    /// Who may touch what. Backlog, issues and findings are a person's at all times, and not looked at.
    pub(super) fn watched(&self, role: Role, focus: &str, files: &Files) -> Watched {
        let may_touch = match role {
            Role::Planning | Role::Audit if self.is_held(role) => None,
            Role::Planning => Some(vec![Files::path(&files.plan())]),
            Role::Reviewing => Some(vec![Files::path(&files.review())]),
            Role::Audit => Some(Vec::new()),
            Role::Implementing => Some(self.implementing(focus)),
        };
        let folders = [BACKLOG, ISSUES, TBD, MEMORY].map(|name| format!("{STORE}/{name}"));
        let session = [Files::path(&files.session())];
        let specs = format!("/{}", self.config.specs.trim_matches('/'));
        let specs = [specs]
            .into_iter()
            .filter(|_| self.holds_specs(role, focus));
        let skip = [".git".to_owned(), STATE.to_owned()]
            .into_iter()
            .chain(folders)
            .chain(session);
        Watched {
            root: self.root.clone(),
            tree: self.trusted.tree().cloned(),
            skip: skip
                .chain(specs)
                .chain(self.products())
                .chain(self.hidden())
                .collect(),
            may_touch,
            protect: if role == Role::Implementing {
                agents::protected(&self.settings)
            } else {
                Vec::new()
            },
            ..Watched::default()
        }
    }

    /// For a session with a person: specs and the mailboxes.
    pub(crate) fn watched_plan(&self) -> Watched {
        let folders = [BACKLOG, ISSUES, TBD].map(|name| format!("{STORE}/{name}/"));
        let own = [format!("{}/", self.config.specs)];
        Watched {
            root: self.root.clone(),
            tree: self.trusted.tree().cloned(),
            skip: [".git".to_owned(), STATE.to_owned()]
                .into_iter()
                .chain(self.products())
                .chain(self.hidden())
                .collect(),
            may_touch: Some(folders.into_iter().chain(own).collect()),
            ..Watched::default()
        }
    }

    fn implementing(&self, focus: &str) -> Vec<String> {
        let specs = &self.config.specs;
        let mut entries: Vec<String> = std::iter::once("/".to_owned()).chain(ours()).collect();
        if !asks_to_change(focus, specs) {
            entries.push(format!("!{specs}/"));
        }
        // Git runs or reads what its configuration names: `core.hooksPath`.
        let named = self.trusted.tree().map(WorkTree::named_by_config);
        let named = named.iter().flatten().filter_map(|path| path.to_str());
        entries.extend(named.flat_map(|path| [format!("!{path}"), format!("!{path}/")]));
        entries
    }

    /// Folders that are not looked into where there is no git to say what counts.
    fn products(&self) -> Vec<String> {
        let without = self.trusted.tree().is_none();
        code_commit_names::left_out(By::Spec)
            .filter(|_| without)
            .map(str::to_owned)
            .collect()
    }
}
