//! Who may see and touch what: the sandbox around agents and around the user's lines, and what is put back after a turn.

use std::path::{Path, PathBuf};

use code_commit_loop_spec::{
    BACKLOG, Files, ISSUES, MEMORY, Role, STORE, TBD, WIP, asks_to_change,
};
use code_commit_names::By;
use code_commit_names::ours::{AGENT_CONFIG, PROJECT_FILE, SPEC_CONFIG, STATE};
use code_commit_perform::Watched;
use code_commit_repo::WorkTree;
use code_commit_runner::{Access, Backend};
use code_commit_settings::keys;

use crate::spec::workspace::Workspace;
use crate::{dot_gits, sandbox};

impl Workspace<'_> {
    /// The folder of the specs.
    pub(super) fn specs(&self) -> PathBuf {
        self.root().join(&self.config.specs)
    }

    /// Whether anything holds what an agent may not touch while it runs.
    pub(super) fn has_wall(&self) -> bool {
        self.probed.backend != Backend::Off
    }

    /// Whether the sandbox keeps this role from changing the specs: what changes there meanwhile is a person's work
    /// then, and stays. Not behind a symlink, which could be replaced.
    fn holds_specs(&self, role: Role, focus: &str) -> bool {
        let specs = self.specs();
        let is_real = specs.is_dir() && specs.canonicalize().is_ok_and(|real| real == specs);
        let may_change = role == Role::Implementing && asks_to_change(focus, &self.config.specs);
        self.has_wall() && is_real && specs != self.root() && !may_change
    }

    /// Whether the sandbox itself keeps a role from changing anything but its plan: what changes meanwhile is a person's work
    /// then, and stays. A home inside of the tree would be seen with it.
    fn is_held(&self, role: Role) -> bool {
        let home = self.env.get("HOME").map(PathBuf::from);
        let reads_only = matches!(role, Role::Planning | Role::Audit);
        reads_only && self.has_wall() && home.is_none_or(|home| !home.starts_with(self.root()))
    }

    pub(super) fn access_of(&self, role: Role, focus: &str) -> Access {
        let mut access = self.access();
        if self.holds_specs(role, focus) {
            let specs = self.specs();
            let above = specs.ancestors().skip(1);
            let above = above.take_while(|above| *above != self.root());
            let above: Vec<PathBuf> = above.map(Path::to_owned).collect();
            access.pinned.splice(..0, above.into_iter().rev());
            access.read_only.push(specs);
        }
        if self.is_held(role) {
            access.read_only.insert(0, self.root().to_owned());
            // In a tree that nobody can change nothing can be moved away.
            access.pinned.clear();
            let wip = self.store.folder(WIP);
            access.writable.retain(|path| {
                !path.starts_with(self.root()) || (role == Role::Planning && *path == wip)
            });
        }
        access
    }

    /// The tree is open, the network too: the agent has to reach its service. The files in the store that are a person's are not.
    pub(super) fn access(&self) -> Access {
        let root = self.root();
        let held = [".git", SPEC_CONFIG, STATE, STORE].map(|name| root.join(name));
        let dot_gits = dot_gits::held(root, &self.dot_gits);
        let tree = self.project.trusted.tree();
        let (mut writable, mut readable) = (self.settings.writable(), self.settings.readable());
        writable.push(self.store.folder(WIP));
        readable.extend(tree.into_iter().flat_map(WorkTree::git_elsewhere));
        let mut masked = keys::hidden_from_agents(root);
        masked.extend(tree.into_iter().flat_map(sandbox::records));
        // What the setup command printed lies there (S4 §Setup Output Handling).
        masked.push(self.store.runs.clone());
        Access {
            read_only: held
                .into_iter()
                .chain(dot_gits)
                .filter(|path| path.exists())
                .collect(),
            pinned: sandbox::ways(root, &self.dot_gits),
            masked,
            network: true,
            writable,
            readable,
            ..Access::new(root, &self.env)
        }
    }

    /// What runs in setup and check is what agents wrote: no more than agents may it change the specs.
    pub(super) fn shell_access(&self) -> Access {
        let mut access = self.access();
        access
            .read_only
            .extend([self.specs()].into_iter().filter(|specs| specs.exists()));
        access
    }

    /// What the sandbox hides from agents: they can read the copies in the record of their run.
    pub(super) fn hidden(&self) -> Vec<String> {
        let hidden = keys::hidden_from_agents(self.root()).into_iter();
        let below = |path: PathBuf| {
            let below = path.strip_prefix(self.root()).ok()?.to_str()?;
            Some(format!("/{below}"))
        };
        hidden
            .filter(|_| self.has_wall())
            .filter_map(below)
            .collect()
    }

    /// What is put back after a turn. Backlog, issues and findings are a person's at all times, and not looked at.
    pub(super) fn watched(&self, role: Role, focus: &str, files: &Files) -> Watched {
        let may_touch = match role {
            Role::Planning | Role::Audit if self.is_held(role) => None,
            Role::Planning => Some(vec![Files::path(&files.plan())]),
            Role::Reviewing => Some(vec![Files::path(&files.review())]),
            Role::Audit => Some(Vec::new()),
            Role::Implementing => Some(self.implementing(focus)),
        };
        let mut watched = self.watch(may_touch);
        let mailboxes = [BACKLOG, ISSUES, TBD, MEMORY].map(|name| format!("{STORE}/{name}"));
        watched.skip.extend(mailboxes);
        watched.skip.push(Files::path(&files.session()));
        if self.holds_specs(role, focus) {
            let specs = self.config.specs.trim_matches('/');
            watched.skip.push(format!("/{specs}"));
        }
        if role == Role::Implementing {
            watched.protect = self.settings.protect_lists();
        }
        watched
    }

    /// What is put back after a session with a person, who writes specs and the files of the store that are theirs.
    pub(super) fn watched_plan(&self) -> Watched {
        let folders = [BACKLOG, ISSUES, TBD].map(|name| format!("{STORE}/{name}/"));
        let specs = format!("{}/", self.config.specs);
        self.watch(Some(folders.into_iter().chain([specs]).collect()))
    }

    fn watch(&self, may_touch: Option<Vec<String>>) -> Watched {
        let mut skip = [".git", STATE].map(str::to_owned).to_vec();
        if self.project.trusted.tree().is_none() {
            // Nothing says which folders hold products.
            skip.extend(code_commit_names::left_out(By::Spec).map(str::to_owned));
        }
        skip.extend(self.hidden());
        Watched {
            root: self.root().to_owned(),
            tree: self.project.trusted.tree().cloned(),
            git: self.project.trusted.git(self.root()).ok(),
            skip,
            may_touch,
            ..Watched::default()
        }
    }

    fn implementing(&self, focus: &str) -> Vec<String> {
        let specs = &self.config.specs;
        let mut entries = vec!["/".to_owned()];
        // What no agent may change, whatever its role.
        entries.extend([STORE, STATE, AGENT_CONFIG].map(|name| format!("!{name}/")));
        entries.extend([SPEC_CONFIG, PROJECT_FILE].map(|name| format!("!{name}")));
        if !asks_to_change(focus, specs) {
            entries.push(format!("!{specs}/"));
        }
        // Git runs or reads what its configuration names: `core.hooksPath`.
        let named = self.project.trusted.tree().map(WorkTree::named_by_config);
        let named = named.into_iter().flatten().filter_map(|path| path.to_str());
        entries.extend(named.flat_map(|path| [format!("!{path}"), format!("!{path}/")]));
        entries
    }
}
