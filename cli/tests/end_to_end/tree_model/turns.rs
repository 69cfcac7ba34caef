//! A turn of an agent in a phase or a spec: a scripted agent that does the deeds of the plan once, and what must be there then.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use code_commit_fixtures::project::Project;

use super::judge::{Role, Turn, top};
use super::plan::Plan;
use super::tree::{Node, Tree, bytes};
use super::{Case, Differences, Fault, Saved, make};
use crate::scenes::files;
use crate::scenes::phase::{KEY, Scene as Phase};
use crate::scenes::program::Ran;
use crate::scenes::spec::{PLAN, Scene as Spec};

/// Git ignores it, so that no role's turn is about it. It is there before: behind Landlock nobody makes a file at the top.
pub const BEGUN: &str = "begun.o";
/// What a phase is about: no role may change it.
pub const OF_PHASE: [&str; 2] = [".abl/specs/phase1.md", ".abl/abl.config.yaml"];
/// Turns for which there is a script.
const MOST_TURNS: u32 = 6;

pub enum Scene {
    Phase(Phase),
    Spec(Spec),
}

impl Scene {
    pub fn new(plan: &Plan, turn: Turn) -> Self {
        let deeds = format!(
            "[ -s {BEGUN} ] || {{ echo begun > {BEGUN}; {{ :\n{}\n}} >> {BEGUN} 2>&1; }}\n",
            plan.lines.join("\n") + "\necho all done"
        );
        let does = |role| {
            if turn.role == role {
                deeds.as_str()
            } else {
                ""
            }
        };
        let scene = match turn.role {
            Role::Builder => {
                let scene = Phase::new(&[]);
                let root = scene.project("");
                for made in [".env", "prompts"] {
                    let place = root.join(made);
                    if place.is_dir() {
                        fs::remove_dir_all(place)
                    } else {
                        fs::remove_file(place)
                    }
                    .unwrap();
                }
                scene.project.git(&["init", "-q", "-b", "main"]).unwrap();
                scene.write(
                    ".abl/abl.config.yaml",
                    "directories: {src: .}\nloop: {max_verifier_iterations: 1}\n",
                );
                let verdict = if plan.passes { "" } else { "fails 404\n" };
                let trespasses = |names: &[&str]| {
                    let places = names.iter().map(|name| scene.project(name));
                    let places = places.map(|place| format!("'{}'", place.display()));
                    let places = places.collect::<Vec<_>>().join(" ");
                    let all = format!(
                        "for place in {places}; do {{ echo evil > \"$place\"; chmod 777 \"$place\"; rm -rf \"$place\"; }} 2>&-; done\n"
                    );
                    // Without a sandbox, nothing keeps a role in its folder.
                    if plan.is_held { all } else { String::new() }
                };
                let by_builder = deeds.clone() + &trespasses(&OF_PHASE);
                let by_verifier =
                    trespasses(&[&OF_PHASE[..], &["a", "b", "d", "planted"]].concat()) + verdict;
                for number in 1..=MOST_TURNS {
                    let place = |role| scene.at(&format!("bin/turns/{role}-{number}.sh"));
                    fs::write(place("builder"), bytes(&by_builder)).unwrap();
                    fs::write(place("verifier"), &by_verifier).unwrap();
                }
                Self::Phase(scene)
            }
            Role::Planning | Role::Implementing | Role::Reviewing => {
                let verdict = if plan.passes {
                    "<APPROVED>good</APPROVED>"
                } else {
                    "<REQUEST_CHANGES>no</REQUEST_CHANGES>"
                };
                // In a sandbox an agent can neither count its turns nor keep what its session was asked: one that goes on says
                // nothing, and is asked anew.
                let script = format!(
                    "case \"$prompt\" in\n*.plan.md*) {}{PLAN};;\n*.review.md*) {}tool Read .specs/a.md; say '{verdict}';;\n\
                    'You were interrupted.'*) ;;\n*) {}say '<DONE>all</DONE>';;\nesac\n",
                    does(Role::Planning),
                    does(Role::Reviewing),
                    does(Role::Implementing),
                );
                let scene = Spec::without_commits(&[]);
                for number in 1..=MOST_TURNS {
                    files::write(
                        &scene.home().join(format!("bin/turn-{number}")),
                        bytes(&script),
                    );
                }
                Self::Spec(scene)
            }
        };
        fs::write(scene.project().root().join(".gitignore"), "").unwrap();
        make(plan, scene.project());
        fs::write(scene.project().root().join(BEGUN), "").unwrap();
        scene
    }

    pub fn project(&self) -> &Project {
        match self {
            Self::Phase(scene) => &scene.project,
            Self::Spec(scene) => &scene.project,
        }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        match self {
            Self::Phase(scene) => scene.command(args, &[("GEMINI_API_KEY", KEY)]),
            Self::Spec(scene) => scene.command(args, &[]),
        }
    }

    pub fn run(&self, backend: &str) -> Command {
        match self {
            Self::Phase(_) => self.command(&["phase", "run", "--sandbox", backend]),
            Self::Spec(_) => {
                self.command(&["spec", "run", "--focus", "Add X", "--sandbox", backend])
            }
        }
    }

    /// What goes on with a run that did not end.
    fn goes_on(&self, backend: &str) -> Command {
        match self {
            Self::Phase(_) => self.run(backend),
            Self::Spec(_) => self.command(&["spec", "run", "--resume", "--sandbox", backend]),
        }
    }

    /// What the deeds printed; empty until they have begun.
    pub fn begun(&self) -> String {
        files::text(&self.project().root().join(BEGUN))
    }
}

impl Case {
    /// What differs after a run in which an agent did the deeds.
    pub(super) fn after_turn(
        &self,
        scene: &Scene,
        turn: Turn,
        ran: &Ran,
        saved: &Saved,
        sealed: &[Option<(u32, String)>],
    ) -> Differences {
        let plan = &self.plan;
        let mut found = Differences {
            said: format!("--- the run\n{ran}\n"),
            text: String::new(),
        };
        let mut ended = ran.code;
        let mut is_whole = matches!(self.fault, Fault::None) && saved.is_empty();
        if !matches!(self.fault, Fault::None) && ran.code != Some(self.exit_code(turn)) {
            let mut again = self.as_user(&scene.goes_on(self.backend), &[]);
            found.said.push_str(&format!("--- goes on\n{again}\n"));
            if again.code == Some(7) {
                // It had not begun.
                again = self.as_user(&scene.run(self.backend), &[]);
                found.said.push_str(&format!("--- anew\n{again}\n"));
            }
            if again.code == Some(4) {
                // It went on in its session, and said nothing: the turn is asked for once more.
                again = self.as_user(&scene.goes_on(self.backend), &[]);
                found.said.push_str(&format!("--- once more\n{again}\n"));
            }
            ended = again.code;
        }
        found.expect(
            "the exit code",
            ended == Some(self.exit_code(turn)) || !saved.is_empty(),
        );
        found.expect("what the turn is about", self.sealed() == sealed);
        let deeds = scene.begun();
        found.said.push_str(&format!("--- the deeds\n{deeds}"));
        is_whole |= saved.is_empty() && is_done(&deeds);
        found.expect("the deeds were done", !is_whole || is_done(&deeds));
        let expected = turn.judge(&plan.rules, &plan.base, &plan.built);
        found.turn(self, turn, saved, is_whole);
        // Restoring comes first where what is replaced cannot be kept.
        if is_whole && !matches!(self.fault, Fault::Disk(..)) {
            let kept = texts(self.scene.project().beside());
            for (path, node) in &plan.built.0 {
                if let Node::File(_, text) = node
                    && expected.tree.get(path) != Some(node)
                    && !kept.contains(text)
                {
                    found.text.push_str(&format!(
                        "lost: {text:?}, which the agent wrote at {path:?}\n"
                    ));
                }
            }
        }
        if is_whole && turn.role == Role::Builder {
            let status = self.scene.project().git(&[
                "-c",
                "safe.directory=*",
                "status",
                "--porcelain",
                "--",
                ":!.abl",
            ]);
            let left = |line: &&str| !line.ends_with('/') && !line.ends_with("/\"");
            let uncommitted: Vec<String> = status
                .unwrap()
                .lines()
                .filter(left)
                .map(str::to_owned)
                .collect();
            found.expect(
                &format!("a commit of everything: {uncommitted:?}"),
                uncommitted.is_empty(),
            );
        }
        let before = self.tree();
        let undone = self.as_user(&scene.command(&["undo"]), &[]);
        found.said.push_str(&format!("--- undo\n{undone}\n"));
        found.expect(
            "undo names git",
            undone.code == Some(3) && undone.err.contains("git revert"),
        );
        found.expect("undo changes nothing", self.tree() == before);
        found
    }

    fn exit_code(&self, turn: Turn) -> i32 {
        match (turn.role, self.plan.passes) {
            (_, true) => 0,
            (Role::Builder, false) => 6,
            (Role::Planning | Role::Implementing | Role::Reviewing, false) => 1,
        }
    }
}

/// Whether all deeds were done, by what they printed.
fn is_done(deeds: &str) -> bool {
    deeds.ends_with("all done\n") && !deeds.contains("failed") && !deeds.contains("refused")
}

impl Differences {
    /// Compares after a turn. One that was cut off has left what it may touch as it was at some moment, and nothing else.
    fn turn(&mut self, case: &Case, turn: Turn, saved: &Saved, is_whole: bool) {
        let expected = turn.judge(&case.plan.rules, &case.plan.base, &case.plan.built);
        let (plan, is) = (&case.plan, case.tree().without_empty_folders());
        let must = expected.tree.clone().without_empty_folders();
        let persons: BTreeSet<&str> = saved.keys().map(|path| top(path)).collect();
        let all: BTreeSet<&String> = is.paths().chain(must.paths()).collect();
        // A disk error can prevent git from listing its files; then every new file of a role that may change nothing counts.
        let may_restore_all = matches!(turn.role, Role::Planning | Role::Reviewing)
            && matches!(case.fault, Fault::Disk(..));
        for path in all {
            let (is, must) = (is.get(path), must.get(path));
            let is_some_moment = || {
                let is_empty = matches!(is, Some(Node::File(_, text)) if text.is_empty());
                let is_as_then =
                    |tree: &Tree| tree.get(path).map(without_mode) == is.map(without_mode);
                is.is_none()
                    || is_empty
                    || path.ends_with("saved.tmp")
                    || plan.moments.iter().any(is_as_then)
            };
            let may_leave = || turn.may_leave(&plan.rules, &plan.base, &plan.built, path);
            // A folder comes and goes with the files in it, which are compared for themselves.
            let is_at_most_folder =
                |node: Option<&Node>| matches!(node, None | Some(Node::Folder(_)));
            let is_fine = is == must
                || (is_at_most_folder(is) && is_at_most_folder(must))
                || expected.loose.contains(path)
                || persons.contains(top(path))
                || (!is_whole && may_leave() && is_some_moment())
                || (may_restore_all && may_leave() && is == plan.base.get(path));
            if !is_fine {
                self.text
                    .push_str(&format!("{path:?} is {is:?}, but must be {must:?}\n"));
            }
        }
    }
}

fn without_mode(node: &Node) -> Node {
    match node {
        Node::Folder(_) => Node::Folder(0),
        Node::File(_, text) => Node::File(0, text.clone()),
        Node::Link(_) | Node::Other => node.clone(),
    }
}

/// What is in all files below a folder.
pub fn texts(folder: &Path) -> BTreeSet<String> {
    let (mut found, mut todo) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => todo.push(entry.path()),
                kind if kind.is_file() => _ = found.insert(files::text(&entry.path())),
                _ => {}
            }
        }
    }
    found
}
