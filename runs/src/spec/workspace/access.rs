//! The sandbox around agents and around the user's lines.

use std::path::{Path, PathBuf};

use code_commit_loop_spec::{Role, STORE, WIP, asks_to_change};
use code_commit_names::ours::{SPEC_CONFIG, STATE};
use code_commit_repo::WorkTree;
use code_commit_runner::{Access, Env};
use code_commit_settings::spec::Config;
use code_commit_settings::{Settings, keys};

use crate::sandbox;
use crate::spec::project;
use crate::spec::workspace::Workspace;

/// Whether backlog, spec issues, findings and what was dismissed may be written in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mailboxes {
    /// They may: a person plans.
    Open,
    /// They may not.
    Held,
}

impl Workspace<'_> {
    pub(super) fn access_of(&self, role: Role, focus: &str) -> Access {
        let mut access = self.access(Mailboxes::Held);
        if self.holds_specs(role, focus) {
            let specs = self.root.join(&self.config.specs);
            let above = specs
                .ancestors()
                .skip(1)
                .take_while(|above| *above != self.root);
            access.pinned.splice(
                ..0,
                above
                    .map(Path::to_owned)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev(),
            );
            access.read_only.push(specs);
        }
        if !self.is_held(role) {
            return access;
        }
        let wip = project::folder(&self.root, WIP);
        let stays_open = |path: &PathBuf| {
            !path.starts_with(&self.root) || (role == Role::Planning && *path == wip)
        };
        Access {
            read_only: [self.root.clone()]
                .into_iter()
                .chain(access.read_only)
                .collect(),
            // In a tree that nobody can change nothing can be moved away.
            pinned: Vec::new(),
            writable: access.writable.into_iter().filter(stays_open).collect(),
            ..access
        }
    }

    /// Whether the sandbox keeps this role from changing the specs: what changes there meanwhile is a person's work
    /// then, and stays. Not behind a symlink, which could be replaced.
    pub(super) fn holds_specs(&self, role: Role, focus: &str) -> bool {
        let specs = self.root.join(&self.config.specs);
        let is_real = specs.is_dir() && specs.canonicalize().is_ok_and(|real| real == specs);
        let may_change = role == Role::Implementing && asks_to_change(focus, &self.config.specs);
        self.has_wall() && is_real && specs != self.root && !may_change
    }

    /// Whether the sandbox itself keeps a role from changing anything but its plan: what changes meanwhile is a person's work
    /// then, and stays. A home inside of the tree would be seen with it.
    pub(super) fn is_held(&self, role: Role) -> bool {
        let home = self.env().get("HOME").map(PathBuf::from);
        let reads_only = matches!(role, Role::Planning | Role::Audit);
        reads_only && self.has_wall() && home.is_none_or(|home| !home.starts_with(&self.root))
    }

    pub(crate) fn access(&self, mailboxes: Mailboxes) -> Access {
        self.ground().access(mailboxes)
    }

    pub(super) fn shell_access(&self) -> Access {
        self.ground().shell_access()
    }

    fn ground(&self) -> Ground<'_> {
        let Self {
            root,
            config,
            settings,
            runs,
            dot_gits,
            trusted,
            ..
        } = self;
        Ground {
            root,
            tree: trusted.tree(),
            config,
            settings,
            runs,
            dot_gits,
            env: self.env(),
        }
    }
}

/// What a sandbox for specs depends on, whoever works in it.
pub(crate) struct Ground<'g> {
    pub root: &'g Path,
    pub tree: Option<&'g WorkTree>,
    pub config: &'g Config,
    pub settings: &'g Settings,
    pub runs: &'g Path,
    /// What leads git into the repositories inside of the project.
    pub dot_gits: &'g [PathBuf],
    pub env: Env,
}

impl Ground<'_> {
    /// The tree is open, the network too: the agent has to reach its service. The mailboxes are a person's and ours.
    fn access(&self, mailboxes: Mailboxes) -> Access {
        let held = [".git", SPEC_CONFIG, STATE]
            .map(|name| self.root.join(name))
            .into_iter();
        let store = [self.root.join(STORE)]
            .into_iter()
            .filter(|_| mailboxes == Mailboxes::Held);
        let wip = project::folder(self.root, WIP);
        let set = |places: &[code_commit_settings::Setting<PathBuf>]| -> Vec<PathBuf> {
            places.iter().map(|place| place.value.clone()).collect()
        };
        let dot_gits = sandbox::held_dot_gits(self.root, self.dot_gits);
        let git_elsewhere = self.tree.into_iter().flat_map(WorkTree::git_elsewhere);
        Access {
            read_only: held
                .chain(store)
                .chain(dot_gits)
                .filter(|path| path.exists())
                .collect(),
            pinned: sandbox::ways(self.root, self.dot_gits),
            masked: keys::hidden_from_agents(self.root)
                .into_iter()
                .chain(self.tree.into_iter().flat_map(sandbox::records))
                // What the setup command printed lies there (S4 §Setup Output Handling).
                .chain([self.runs.to_owned()])
                .collect(),
            network: true,
            writable: set(&self.settings.writable)
                .into_iter()
                .chain([wip])
                .collect(),
            readable: set(&self.settings.readable)
                .into_iter()
                .chain(git_elsewhere)
                .collect(),
            ..Access::new(self.root, &self.env)
        }
    }

    /// What runs in setup and check is what agents wrote: no more than agents may it change the specs.
    pub(crate) fn shell_access(&self) -> Access {
        let mut access = self.access(Mailboxes::Held);
        access.read_only.extend(
            [self.root.join(&self.config.specs)]
                .into_iter()
                .filter(|specs| specs.exists()),
        );
        access
    }
}
