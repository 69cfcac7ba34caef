//! The two roles: how far each can reach, the desk that each has, and where both work.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use agent::Permissions;
use anyhow::Context as _;
use loop_phase::{BUILDER, SRC, TESTS, VERIFIER};
use perform::{Repository, Role, Watched};
use runner::Env;
use settings::keys::DOT_ENV;
use settings::phase::Entry;

use super::Setup;
use crate::commands::agents::{address, protected};
use crate::commands::phase::agents::{self, Chosen};
use crate::commands::phase::desk::Counter;
use crate::commands::phase::project;
use crate::commands::phase::request::{Desk, SOCKET};
use crate::commands::phase::walls;
use crate::exit::Failure;
use names::ours::{ABL, AGENT_CONFIG, STATE};

impl Setup<'_> {
    /// By role.
    pub(super) fn desks(&self) -> Result<BTreeMap<&'static str, Counter>, Failure> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let config = &self.project.config;
        let commands = [(BUILDER, &config.builder_commands), (VERIFIER, &config.verifier_commands)];
        let desk = |(name, commands)| {
            let counter = Counter::new(&program, self.desk(commands));
            Ok((name, counter.context("cannot make the desk for abl-cmd")?))
        };
        commands.into_iter().map(desk).collect()
    }

    pub(super) fn places(&self) -> BTreeMap<String, PathBuf> {
        let own = self.project.root.join(ABL);
        [(loop_phase::ABL, own), (TESTS, self.project.tests().to_owned())]
            .map(|(name, path)| (name.to_owned(), path))
            .into()
    }

    pub(super) fn repositories(&self) -> BTreeMap<String, Repository> {
        let repository = |(name, git): (&str, &repo::Git)| {
            let exclude = self.never_committed(git.folder());
            (name.to_owned(), Repository { git: git.clone(), exclude })
        };
        [(SRC, &self.project.src_git), (TESTS, &self.project.tests_git)].map(repository).into()
    }

    fn desk(&self, commands: &BTreeMap<String, Entry>) -> Desk {
        let env = Env::allowed(self.environment.all().clone(), &[]);
        let text = |word: &OsStr| word.to_str().map(str::to_owned);
        Desk {
            socket: PathBuf::new(),
            commands: commands.clone(),
            specs: self.project.specs.clone(),
            cwd: self.project.root.clone(),
            env: env.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect(),
            timeout_seconds: self.args.command_timeout.as_secs().max(1),
        }
    }

    pub(super) fn role(
        &self,
        name: &str,
        chosen: Chosen,
        desk: Option<&Counter>,
        logs: &Path,
    ) -> Result<Role, Failure> {
        let project = self.project;
        let (own, other) =
            if name == BUILDER { (project.src(), project.tests()) } else { (project.tests(), project.src()) };
        let mut env = Env::allowed(self.environment.all().clone(), &[]);
        let visible = desk.map(Counter::visible).map(Vec::from).unwrap_or_default();
        // The harness's own folder is held fast or hidden where it lies in the role's.
        let state = self.state.join("agents").join(name);
        let home = desk.filter(|_| state.starts_with(own)).map_or(state, |desk| desk.home(name));
        let inside = walls::dot_gits(&project.root, own, other)?;
        let walls = walls::around(&project.root, (own, &inside), other, &visible, &env);
        if let Some(desk) = desk {
            let path = env.get("PATH").map_or_else(|| "/usr/local/bin:/usr/bin:/bin".into(), OsString::from);
            let folders = [desk.bin()].into_iter().chain(std::env::split_paths(&path));
            env.set("PATH", std::env::join_paths(folders).unwrap_or(path.clone()));
            env.set(SOCKET, desk.socket());
        }
        let address = address(chosen.cli.kind, self.args.base_url.as_ref());
        Ok(Role {
            cli: chosen.cli,
            cwd: own.to_owned(),
            confinement: self.probed.confine(walls),
            model: Some(chosen.model),
            env,
            extra_env: agents::passed(self.environment).into_iter().chain(address).collect(),
            key: Some(chosen.key),
            home: Some(home),
            permissions: Permissions::Skip,
            timeout: self.settings.max_time.value.into_iter().chain([self.args.turn_timeout]).min(),
            idle_timeout: Some(self.args.idle_timeout),
            watched: self.watched(own),
            log: Some(logs.join(format!("{name}.log"))),
        })
    }

    /// All that its walls let it touch, but for what the configuration protects.
    fn watched(&self, own: &Path) -> Watched {
        let root = &self.project.root;
        let below = own.strip_prefix(root).map(|below| below.display().to_string()).unwrap_or_default();
        let protected = protected(&self.settings);
        Watched {
            root: own.to_owned(),
            within: if below.is_empty() { below } else { below + "/" },
            skip: walls::skipped(),
            may_touch: protected.as_ref().map(|_| vec!["/".to_owned()]),
            protected,
            shown: vec![(way(own, root), root.join(project::SPECS))],
        }
    }

    /// Where a role's folder is the root itself, what is not its own stays out of its commits.
    fn never_committed(&self, top: &Path) -> Vec<String> {
        let root = &self.project.root;
        let names = [DOT_ENV, ABL, AGENT_CONFIG, STATE];
        let inside = names
            .iter()
            .map(|name| root.join(name))
            .chain([self.project.tests(), self.project.src()].map(Path::to_owned));
        inside
            .filter(|path| path != top)
            .filter_map(|path| path.strip_prefix(top).ok().map(|path| path.display().to_string()))
            .collect()
    }
}

/// How a role gets from its folder to the specs: they lie at the same place on both sides of its wall.
fn way(own: &Path, root: &Path) -> String {
    let specs = root.join(project::SPECS);
    let common = own.ancestors().find(|folder| specs.starts_with(folder)).unwrap_or(root);
    let up = own.strip_prefix(common).map_or(0, |down| down.components().count());
    format!("{}{}", "../".repeat(up), specs.strip_prefix(common).unwrap_or(&specs).display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_a_role_names_the_specs_as_it_can_open_them() {
        let root = Path::new("/p");
        for (own, way_there) in [
            ("/p/src", "../.abl/specs"),
            ("/p/.abl/tests", "../specs"),
            ("/p/a/b", "../../.abl/specs"),
            ("/p", ".abl/specs"),
        ] {
            assert_eq!(way(Path::new(own), root), way_there, "{own}");
        }
    }
}
