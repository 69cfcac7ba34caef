//! Random replies, builds, orders, agents, kills, disk errors and a person over random trees, on every backend: what is in the tree afterwards is
//! what a model says, which knows the plan of the case alone.
//!
//! `TREE_CASES=1000` tries more, `TREE_SEED` begins elsewhere. Whatever differs is printed with its seed and its plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};
use serde_json::json;

use self::judge::{Expected, Role, Turn, is_apart, is_ignored, top};
use self::plan::{Family, LED_TO, Limits, Plan, pick};
use self::tree::{Node, Tree, on_disk};
use crate::scenes::commit::Scene as Commit;
use crate::scenes::kills::{Dice, places, strace_works};
use crate::scenes::order::{NOTHING, Scene as Order, sha256};
use crate::scenes::program::{Ran, in_reach, program, surrounded};
use crate::scenes::size::chosen;

mod judge;
mod plan;
mod tree;
mod turns;

/// Cases without `TREE_CASES`: half of them commit loops, half orders, and a third as many again agents' turns.
const CASES: usize = 24;
const BACKENDS: [&str; 3] = ["namespaces", "landlock", "off"];
const NOBODY: u32 = 65534;
/// An editor saves into this file, and gives it its name then.
const BEING_SAVED: &str = ".being-saved";

/// The person saves something this often.
const PACE: Duration = Duration::from_millis(7);
const MOST_SAVED: usize = 12;
/// System calls at which a disk can fail.
const DISK: [&str; 18] = [
    "openat",
    "write",
    "read",
    "fsync",
    "fdatasync",
    "syncfs",
    "rename",
    "renameat",
    "renameat2",
    "linkat",
    "unlinkat",
    "mkdirat",
    "fchmod",
    "fchmodat",
    "symlinkat",
    "getdents64",
    "statx",
    "newfstatat",
];

/// What happens to the run.
#[derive(Debug, Clone)]
enum Fault {
    None,
    Kill(String, usize),
    /// The call, the error, and when.
    Disk(String, &'static str, String),
}

enum Scene {
    Commit(Commit),
    Order(Order),
    Turn(turns::Scene),
}

struct Case {
    seed: usize,
    backend: &'static str,
    user: u32,
    plan: Plan,
    fault: Fault,
    has_person: bool,
    scene: Scene,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Campaign {
    Commit,
    Order,
    Turn,
}

/// Where the program can be disturbed, by loop, whether it is a phase, and backend.
type Places = BTreeMap<(Campaign, bool, &'static str), Vec<(String, usize)>>;

/// What a person saved, by path.
type Saved = BTreeMap<String, String>;

impl Scene {
    fn project(&self) -> &Project {
        match self {
            Self::Commit(scene) => &scene.project,
            Self::Order(scene) => &scene.project,
            Self::Turn(scene) => scene.project(),
        }
    }

    /// Whether the model was asked, or the agent has begun.
    fn has_begun(&self) -> bool {
        let was_asked = |server: &Server| !server.requests().is_empty();
        match self {
            Self::Commit(scene) => was_asked(&scene.server),
            Self::Order(scene) => was_asked(&scene.server),
            Self::Turn(scene) => !scene.begun().is_empty(),
        }
    }

    fn root(&self) -> &Path {
        self.project().root()
    }
}

fn reply_of_commit(plan: &Plan) -> String {
    let mut reply = String::new();
    for (path, text) in &plan.reply.changes {
        match text {
            Some(text) => write!(reply, "^^^{path}\n{text}^^^end\n").unwrap(),
            None => write!(reply, "^^^{path}\n^^^delete\n").unwrap(),
        }
    }
    if let Some((path, old, new)) = &plan.reply.edit {
        write!(
            reply,
            "^^^edit {path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n^^^end\n"
        )
        .unwrap();
    }
    if let Some(path) = &plan.reply.refused {
        write!(reply, "^^^{path}\nevil\n^^^end\n").unwrap();
    }
    reply
}

fn reply_of_order(plan: &Plan) -> String {
    let base = |path: &str| plan.base.text(path).map_or(NOTHING.to_owned(), sha256);
    let changes = plan
        .reply
        .changes
        .iter()
        .map(|(path, text)| (path.clone(), text.clone()));
    let refused = plan
        .reply
        .refused
        .iter()
        .map(|path| (path.clone(), Some("evil\n".to_owned())));
    let writes: Vec<_> = changes
        .chain(refused)
        .map(|(path, text)| json!({ "path": path, "base_sha256": base(&path), "content": text }))
        .collect();
    json!({ "summary": "a change", "writes": writes }).to_string()
}

/// The tree on disk: what git tracks in its first commit, then the rest.
fn make(plan: &Plan, project: &Project) {
    let root = project.root();
    fs::remove_file(root.join(".gitignore")).unwrap();
    plan.base.make(root, |path| {
        !plan.untracked.contains(path) && plan.rules.accounts_for(path)
    });
    project.commit("the tree").unwrap();
    for path in &plan.rules.forced {
        let mut git = Command::new("git");
        git.args(["--literal-pathspecs", "add", "-f", "--"])
            .arg(on_disk(Path::new("."), path));
        assert!(git.current_dir(root).status().unwrap().success());
    }
    project
        .git(&["commit", "-q", "--allow-empty", "-m", "what is ignored"])
        .unwrap();
    plan.base.make(root, |path| {
        plan.untracked.contains(path) || !plan.rules.accounts_for(path)
    });
    // What is made in a folder needs its permissions.
    plan.base.make(root, |path| plan.base.is_folder(path));
}

fn scene(plan: &Plan, leaves_ignored: bool) -> Scene {
    let script = tree::bytes(&plan.script(leaves_ignored));
    match plan.family {
        Family::Commit { .. } => {
            let ignored = [
                (".gitignore", "/agent-config\n"),
                ("build.sh", "#!/bin/sh\n"),
            ];
            let answers = Script::new([]).rule("POST ", Step::text(&reply_of_commit(plan)));
            let scene = Commit::with_files(&ignored, answers);
            if plan.leads {
                scene.write(LED_TO, &script);
                let build = scene.at("build.sh");
                fs::remove_file(&build).unwrap();
                symlink(LED_TO, build).unwrap();
            } else {
                scene.write("build.sh", &script);
            }
            scene.write("agent-config/query.txt", "change it\n");
            make(plan, &scene.project);
            assert_eq!(scene.run(&["rollup"]).code, Some(0));
            Scene::Commit(scene)
        }
        Family::Order { keeps } => {
            let files = [
                (".gitignore", "x\n"),
                ("scripts/verify.sh", "#!/bin/sh\n"),
                ("tests/deeds.sh", "#!/bin/sh\n"),
            ];
            let answers = Script::new([]).rule("POST ", Step::text(&reply_of_order(plan)));
            let scene = Order::scripted(&files, answers);
            scene.write("tests/deeds.sh", &script);
            make(plan, &scene.project);
            scene.place_order(&json!({
                "allowed_files": plan.allowed, "context_files": [], "acceptance_commands": ["sh tests/deeds.sh"],
            }));
            if keeps {
                scene.user_file("[order]\nbyproducts = \"keep\"\n");
            }
            Scene::Order(scene)
        }
        Family::Turn(turn) => Scene::Turn(turns::Scene::new(plan, turn)),
    }
}

impl Case {
    fn new(seed: usize, campaign: Campaign, places: &mut Places) -> Self {
        let mut dice = Dice::of(seed.wrapping_mul(0x5851_F42D) ^ campaign as usize);
        // The first throws of neighbouring seeds are alike.
        (0..4).for_each(|_| _ = dice.below(2));
        let backend = BACKENDS[seed % BACKENDS.len()];
        let is_root = rustix::process::geteuid().is_root();
        let user = if is_root && dice.below(3) == 0 {
            NOBODY
        } else {
            rustix::process::geteuid().as_raw()
        };
        let family = match (campaign, dice.below(3) == 0) {
            (Campaign::Commit, restores) => Family::Commit { restores },
            (Campaign::Order, keeps) => Family::Order { keeps },
            (Campaign::Turn, is_builders) => {
                let of_spec = pick(
                    &mut dice,
                    &[Role::Planning, Role::Implementing, Role::Reviewing],
                );
                // Landlock is refused for phases. Behind a sandbox, a planner can do nothing to the tree.
                let role = match of_spec {
                    _ if is_builders && backend != "landlock" => Role::Builder,
                    Role::Planning if backend != "off" => Role::Reviewing,
                    Role::Builder | Role::Planning | Role::Implementing | Role::Reviewing => {
                        of_spec
                    }
                };
                Family::Turn(Turn {
                    role,
                    protects: dice.below(2) == 0,
                })
            }
        };
        let (is_order, is_turn) = (campaign == Campaign::Order, campaign == Campaign::Turn);
        let kind = dice.below(8);
        let has_person = dice.below(4) == 0;
        // A killed order is run again, where ignored files are as its first command has left them; so they are after the command was
        // tried on the base, which it is in these cases and in some of the others.
        let leaves_ignored = is_order && (kind >= 4 || (seed / BACKENDS.len()).is_multiple_of(4));
        // A sandbox lets nobody make a set-user-ID program; without one, it does not stay.
        let limits = Limits {
            drops_set_id: backend != "off",
            keeps_top: backend == "landlock",
            leaves_ignored,
            links_nothing: has_person,
            holds_settings: is_turn && (backend != "off" || kind >= 4),
            is_held: backend != "off",
        };
        let plan = Plan::new(&mut dice, family, limits);
        let scene = scene(&plan, leaves_ignored);
        let mut case = Self {
            seed,
            backend,
            user,
            plan,
            fault: Fault::None,
            has_person,
            scene,
        };
        if kind >= 4 && strace_works() {
            let is_phase = matches!(
                family,
                Family::Turn(Turn {
                    role: Role::Builder,
                    ..
                })
            );
            let all = places
                .entry((campaign, is_phase, backend))
                .or_insert_with(|| places_of(family, backend));
            case.fault = fault(&mut dice, kind, all);
        }
        case
    }

    /// The run.
    fn command(&self) -> Command {
        match &self.scene {
            Scene::Commit(scene) => {
                let mut args = scene.model().to_vec();
                args.extend([
                    "--sandbox",
                    self.backend,
                    "--rounds",
                    "1",
                    "--edits",
                    "--stream=false",
                ]);
                if self.plan.family == (Family::Commit { restores: true }) {
                    args.extend(["--on-failure", "restore"]);
                }
                scene.keyed(&args, &[])
            }
            Scene::Order(scene) => {
                scene.command(&["--sandbox", self.backend, "--max-attempts", "1"])
            }
            Scene::Turn(scene) => scene.run(self.backend),
        }
    }

    fn program(&self, args: &[&str]) -> Command {
        match &self.scene {
            Scene::Commit(scene) => scene.command(args, &[]),
            Scene::Order(scene) => scene.program(args),
            Scene::Turn(scene) => scene.command(args),
        }
    }

    /// Runs a command as the user of this case.
    fn as_user(&self, command: &Command, strace: &[&str]) -> Ran {
        let log = self.scene.project().beside().join("strace");
        let mut words: Vec<&OsStr> = Vec::new();
        if !strace.is_empty() {
            words.extend(["strace", "-qq", "-o"].map(OsStr::new));
            words.push(log.as_os_str());
            words.extend(strace.iter().map(OsStr::new));
        }
        words.push(program_in_reach().as_os_str());
        words.extend(command.get_args());
        let mut starter = Command::new(words[0]);
        starter.args(&words[1..]);
        surrounded(&mut starter, command);
        let mut command = starter;
        if rustix::process::geteuid().is_root() {
            command.uid(self.user).gid(self.user);
        }
        Ran::of(&mut command)
    }

    fn disturbed(&self) -> Ran {
        let inject = match &self.fault {
            Fault::None => return self.as_user(&self.command(), &[]),
            Fault::Kill(call, count) => format!("inject={call}:signal=KILL:when={count}"),
            Fault::Disk(call, error, when) => format!("inject={call}:error={error}:when={when}"),
        };
        self.as_user(&self.command(), &["-e", &inject])
    }

    /// The differences from what must be there; empty if there are none. None where the backend does not work.
    fn differences(&self) -> Option<String> {
        let beside = self.scene.project().beside();
        if rustix::process::geteuid().is_root() {
            let owner = format!("{0}:{0}", self.user);
            assert!(
                Command::new("chown")
                    .args(["-hR", &owner])
                    .arg(beside)
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let sealed = self.sealed();
        let (stop, stopped) = channel();
        let (ran, saved) = thread::scope(|scope| {
            let person = scope.spawn(move || {
                if self.has_person {
                    self.person(&stopped)
                } else {
                    Saved::new()
                }
            });
            let ran = self.disturbed();
            stop.send(()).unwrap_or(());
            (ran, person.join().unwrap())
        });
        if ran.code == Some(3) && ran.err.contains("does not work here") {
            eprintln!("SKIPPED: a tree on {}: {}", self.backend, ran.err.trim());
            return None;
        }
        if let (Scene::Turn(scene), Family::Turn(turn)) = (&self.scene, self.plan.family) {
            return Some(
                self.after_turn(scene, turn, &ran, &saved, &sealed)
                    .finish(&saved, beside),
            );
        }
        let mut found = Differences {
            said: format!("--- the run\n{ran}\n"),
            text: String::new(),
        };
        let is_order = matches!(self.scene, Scene::Order(_));
        let (ends, stages) = (self.plan.ends(), self.plan.stages());
        // Said in time: the disk failed when a file had to be copied.
        if ran.err.contains("undo cannot restore what a build changes") {
            return Some(String::new());
        }
        let is_disturbed = !matches!(self.fault, Fault::None) || !saved.is_empty();
        if !is_disturbed {
            found.expect("the exit code", ran.code == Some(self.plan.exit_code()));
            found.compare(
                "after the run",
                &self.tree(),
                std::slice::from_ref(&ends),
                &saved,
                self,
            );
            found.ignored(self, beside);
        }
        let mut is_ended = matches!(ran.code, Some(0 | 1));
        if is_disturbed {
            if is_order && !is_ended {
                let again = self.as_user(&self.command(), &[]);
                is_ended =
                    matches!(again.code, Some(0 | 1)) || again.err.contains("already finished");
                found
                    .said
                    .push_str(&format!("--- the order again\n{again}\n"));
                found.expect("the order goes on", is_ended || !saved.is_empty());
            } else {
                let next = self.as_user(&self.program(&["rollup"]), &[]);
                found
                    .said
                    .push_str(&format!("--- the next command\n{next}\n"));
                found.expect("recovery", next.code == Some(0) || is_order);
            }
            let allowed = if is_ended && is_order {
                vec![ends, Expected::exactly(self.plan.base.clone())]
            } else {
                stages
            };
            found.compare("after recovery", &self.tree(), &allowed, &saved, self);
        }
        found.expect(
            "what is sealed",
            self.sealed() == sealed || matches!(self.fault, Fault::Disk(..)),
        );
        let undone = self.as_user(&self.program(&["undo"]), &[]);
        found.said.push_str(&format!("--- undo\n{undone}\n"));
        // Undo refuses what somebody has changed since, and does not remove ignored files where a file has to be.
        let is_refused = (!saved.is_empty() && undone.code == Some(3))
            || (self.plan.has_ignored_in_the_way() && undone.code == Some(5));
        if !is_refused {
            found.expect("undo", matches!(undone.code, Some(0 | 7)));
            let judged = self.plan.rules.judge(&self.plan.replied, &self.plan.built);
            let mut before = Expected {
                tree: self.plan.reverted(&judged),
                loose: judged.loose,
            };
            if self.plan.reply.refused.is_some() {
                before = Expected::exactly(self.plan.base.clone());
            }
            found.compare("after undo", &self.tree(), &[before], &saved, self);
        }
        Some(found.finish(&saved, beside))
    }

    /// What decides about the command: what it is, with its mode, and what it holds.
    fn sealed(&self) -> Vec<Option<(u32, String)>> {
        let at = |path: &str| {
            let place = self.scene.root().join(path);
            let found = fs::symlink_metadata(&place).ok()?;
            let mode = found.permissions().mode();
            let text = if found.is_symlink() {
                fs::read_link(&place).unwrap().display().to_string()
            } else {
                fs::read_to_string(&place).unwrap_or_default()
            };
            Some((mode, text))
        };
        let names = ["build.sh", LED_TO, "scripts/verify.sh"];
        names.into_iter().chain(turns::OF_PHASE).map(at).collect()
    }

    fn tree(&self) -> Tree {
        Tree::read(self.scene.root())
    }

    /// Saves files from the moment when the model is asked: new ones, and where nothing but a view protects them from the command,
    /// those that the run changes too.
    fn person(&self, stop: &Receiver<()>) -> Saved {
        let mut dice = Dice::of(self.seed + 77);
        let mut saved = Saved::new();
        let (is_in_view, settings) = match self.plan.family {
            Family::Turn(turn) => (false, turn.settings().map(|(path, _)| path).collect()),
            Family::Commit { .. } | Family::Order { .. } => {
                (self.backend == "namespaces", Vec::new())
            }
        };
        let touched: BTreeSet<&str> = self.plan.touched.iter().map(|path| top(path)).collect();
        let base = &self.plan.base;
        let files: Vec<&String> = (base.paths())
            .filter(|path| base.is_file(path) && path.as_str() != ".gitignore")
            .filter(|path| !settings.contains(&path.as_str()))
            // What the command did to an ignored file that was saved before it began, nobody accounts for.
            .filter(|path| (is_in_view && !is_ignored(path)) || !touched.contains(top(path)))
            .collect();
        while stop.recv_timeout(PACE).is_err() {
            if !self.scene.has_begun() || saved.len() >= MOST_SAVED {
                continue;
            }
            let number = saved.len();
            let path = if dice.below(3) == 0 || files.is_empty() {
                format!("person/{number}")
            } else {
                pick(&mut dice, &files).clone()
            };
            let text = format!("<<{}-{number}>>\n", self.seed);
            if saved.contains_key(&path) {
                continue;
            }
            let place = on_disk(self.scene.root(), &path);
            let by_rename = dice.below(2) == 0;
            if save(&place, &text, by_rename, self.user) {
                saved.insert(path, text);
            }
        }
        saved
    }

    fn shown(&self) -> String {
        let Self {
            seed,
            backend,
            user,
            plan,
            fault,
            has_person,
            ..
        } = self;
        let mut shown = format!(
            "TREE_SEED={seed} {:?} on {backend} as {user}, {fault:?}, person {has_person}, passes {}\n",
            plan.family, plan.passes
        );
        for (path, node) in &plan.base.0 {
            let kind = match (
                plan.untracked.contains(path),
                plan.rules.forced.contains(path),
            ) {
                (true, _) => "untracked ",
                (_, true) => "tracked by force ",
                _ => "",
            };
            writeln!(shown, "  {kind}{path:?}: {node:?}").unwrap();
        }
        writeln!(shown, "  reply {:?}", plan.reply).unwrap();
        writeln!(shown, "  allowed {:?}", plan.allowed).unwrap();
        for line in &plan.lines {
            writeln!(shown, "  $ {line}").unwrap();
        }
        shown
    }
}

struct Differences {
    text: String,
    /// What the program printed.
    said: String,
}

impl Differences {
    fn expect(&mut self, what: &str, is_so: bool) {
        if !is_so {
            writeln!(self.text, "not as expected: {what}").unwrap();
        }
    }

    /// Ignored files that are no products: what the command replaced or removed is kept, and the rollback of an order brings it
    /// back.
    fn ignored(&mut self, case: &Case, beside: &Path) {
        let plan = &case.plan;
        let (is, kept) = (case.tree(), turns::texts(beside));
        let is_rolled_back = matches!(plan.family, Family::Order { .. }) && !plan.passes;
        let apart = |path: &str| is_apart(path) && !plan.rules.accounts_for(path);
        for (path, node) in plan.base.0.iter().filter(|(path, _)| apart(path)) {
            let Node::File(_, text) = node else {
                continue;
            };
            if is_rolled_back && is.text(path) != Some(text) {
                writeln!(
                    self.text,
                    "ignored {path:?} is {:?}, but must be {text:?} again",
                    is.get(path)
                )
                .unwrap();
            }
            if !text.is_empty() && !kept.contains(text) {
                writeln!(
                    self.text,
                    "lost: {text:?}, which was in the ignored file {path:?}"
                )
                .unwrap();
            }
        }
    }

    /// The differences with what the program printed; empty if there are none.
    fn finish(mut self, saved: &Saved, beside: &Path) -> String {
        let there = contents(beside);
        for (path, text) in saved
            .iter()
            .filter(|(_, text)| !there.contains(text.as_str()))
        {
            writeln!(
                self.text,
                "lost: {text:?}, which the person saved in {path:?}"
            )
            .unwrap();
        }
        if self.text.is_empty() {
            self.text
        } else {
            format!("{}\n{}", self.text, self.said)
        }
    }

    /// Compares with each tree that may be there, and says how the nearest one differs.
    fn compare(
        &mut self,
        when: &str,
        tree: &Tree,
        allowed: &[Expected],
        saved: &Saved,
        case: &Case,
    ) {
        let tops: BTreeSet<&str> = saved.keys().map(|path| top(path)).collect();
        let all = allowed.iter().map(|expected| {
            differing(
                tree,
                expected,
                case,
                &tops,
                allowed.len() > 1 || when == "after undo",
            )
        });
        let nearest = all.min_by_key(Vec::len).unwrap_or_default();
        for line in nearest {
            writeln!(self.text, "{when}: {line}").unwrap();
        }
    }
}

/// The lines of all differences, except in the top folders where the person has saved something.
fn differing(
    tree: &Tree,
    expected: &Expected,
    case: &Case,
    persons: &BTreeSet<&str>,
    was_disturbed: bool,
) -> Vec<String> {
    let (is, must) = (
        tree.clone().without_empty_folders(),
        expected.tree.clone().without_empty_folders(),
    );
    let plan = &case.plan;
    let all: BTreeSet<&String> = is.paths().chain(must.paths()).collect();
    let is_fine = |path: &str| {
        let (is, must) = (is.get(path), must.get(path));
        // A killed order rolls back before it goes on.
        let is_rolled_back = matches!(plan.family, Family::Order { .. })
            && (!plan.passes || !matches!(case.fault, Fault::None));
        // The command may have moved or copied it. What was half saved when the tree was surveyed is put back like that.
        let is_persons = !persons.is_empty()
            && (path.ends_with(BEING_SAVED)
                || matches!(is, Some(Node::File(_, text)) if text.starts_with("<<")));
        if is == must
            || is_persons
            || (is_rolled_back && is.map(as_git_has_it) == must.map(as_git_has_it))
            || persons.contains(top(path))
            || top(path) == "scripts"
            || top(path) == "tests"
        {
            return true;
        }
        if plan.rules.accounts_for(path) {
            return matches!(is.or(must), Some(Node::Folder(_)))
                && holds_only_ignored(case, tree, path);
        }
        // A rollback of an order restores small ignored files.
        let is_loose = expected.loose.contains(path) || was_disturbed || is_rolled_back;
        is_loose
            && (is.is_none()
                || [
                    plan.base.get(path),
                    plan.replied.get(path),
                    plan.built.get(path),
                ]
                .contains(&is))
    };
    let line = |path: &&String| {
        format!(
            "{path:?} is {:?}, but must be {:?}",
            is.get(path),
            must.get(path)
        )
    };
    all.iter().filter(|path| !is_fine(path)).map(line).collect()
}

/// A rollback by git restores of a mode only whether a file can be executed.
fn as_git_has_it(node: &Node) -> Node {
    match node {
        Node::Folder(_) => Node::Folder(0o755),
        Node::File(mode, text) => Node::File(mode & 0o100, text.clone()),
        Node::Link(_) | Node::Other => node.clone(),
    }
}

/// Whether a folder is there only for what git ignores.
fn holds_only_ignored(case: &Case, tree: &Tree, folder: &str) -> bool {
    let inner = tree.at_or_below(folder);
    inner
        .iter()
        .all(|path| tree.is_folder(path) || !case.plan.rules.accounts_for(path))
}

/// One copy of the program for all cases, which every user may start.
fn program_in_reach() -> &'static Path {
    static COPY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = COPY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copied = in_reach(
            &program(Path::new("/"), Path::new("/"), &[], &[]),
            folder.path(),
        );
        let program = PathBuf::from(copied.get_program());
        (folder, program)
    });
    program
}

/// As editors do: in place, or by a rename. Whether it is saved: the folder may be gone by now.
fn save(place: &Path, text: &str, by_rename: bool, user: u32) -> bool {
    let folder = place.parent().unwrap();
    if fs::create_dir_all(folder).is_err()
        || fs::symlink_metadata(place).is_ok_and(|found| !found.is_file())
    {
        return false;
    }
    let own = |path: &Path| drop(std::os::unix::fs::chown(path, Some(user), Some(user)));
    own(folder);
    let written = if by_rename {
        folder.join(BEING_SAVED)
    } else {
        place.to_owned()
    };
    if fs::write(&written, text).is_err() {
        return false;
    }
    own(&written);
    !by_rename || fs::rename(&written, place).is_ok()
}

/// The first lines of all files below a folder, and of all objects of git.
fn contents(folder: &Path) -> BTreeSet<String> {
    let (mut found, mut todo) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => todo.push(entry.path()),
                kind if kind.is_file() => {
                    let text = fs::read(entry.path()).unwrap();
                    if text.starts_with(b"<<") {
                        let line = text.split_inclusive(|byte| *byte == b'\n').next().unwrap();
                        found.insert(String::from_utf8_lossy(line).into_owned());
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The system calls of one run, which those of others are like.
fn places_of(family: Family, backend: &'static str) -> Vec<(String, usize)> {
    let plan = Plan::new(
        &mut Dice::of(3),
        family,
        Limits {
            drops_set_id: true,
            keeps_top: true,
            leaves_ignored: true,
            links_nothing: true,
            holds_settings: true,
            is_held: true,
        },
    );
    let scene = scene(&plan, true);
    let log = scene.project().beside().join("strace");
    let case = Case {
        seed: 0,
        backend,
        user: 0,
        plan,
        fault: Fault::None,
        has_person: false,
        scene,
    };
    places(&log, &case.command())
}

fn fault(dice: &mut Dice, kind: usize, places: &[(String, usize)]) -> Fault {
    if kind < 6 {
        let (call, count) = pick(dice, places);
        return Fault::Kill(call, count);
    }
    let disk: Vec<&(String, usize)> = places
        .iter()
        .filter(|(call, _)| DISK.contains(&call.as_str()))
        .collect();
    // Each kind of call as often, since there are few renames among all the reads.
    let calls: BTreeSet<&String> = disk.iter().map(|(call, _)| call).collect();
    let call = pick(dice, &calls.into_iter().collect::<Vec<_>>()).clone();
    let of_call: Vec<usize> = disk
        .iter()
        .filter(|(other, _)| *other == call)
        .map(|(_, count)| *count)
        .collect();
    let when = pick(dice, &of_call);
    let from_then_on = if dice.below(4) == 0 { "+" } else { "" };
    Fault::Disk(
        call,
        pick(dice, &["EIO", "ENOSPC"]),
        format!("{when}{from_then_on}"),
    )
}

fn campaign(campaign: Campaign) {
    let share = if campaign == Campaign::Turn { 3 } else { 2 };
    let (cases, first) = (chosen("TREE_CASES", CASES) / share, chosen("TREE_SEED", 1));
    let (mut places, mut tally, mut failed) = (Places::new(), BTreeMap::new(), Vec::new());
    for seed in first..first + cases.max(1) {
        let case = Case::new(seed, campaign, &mut places);
        let Some(differences) = case.differences() else {
            continue;
        };
        *tally.entry((case.backend, case.user)).or_insert(0) += 1;
        if !differences.is_empty() {
            let failure = format!("{}\n{differences}", case.shown());
            eprintln!("DIFFERS: {failure}\n=====");
            failed.push(failure);
        }
    }
    eprintln!(
        "cases by backend and user: {tally:?}, {} differ",
        failed.len()
    );
    assert!(
        failed.is_empty(),
        "{} cases differ, the first of them:\n{}",
        failed.len(),
        failed[0]
    );
}

#[test]
fn a_tree_is_as_the_model_says_whatever_happens_to_a_commit_loop() {
    campaign(Campaign::Commit);
}

#[test]
fn a_tree_is_as_the_model_says_whatever_happens_to_an_order() {
    campaign(Campaign::Order);
}

#[test]
fn a_tree_is_as_the_model_says_whatever_happens_in_a_turn_of_an_agent() {
    campaign(Campaign::Turn);
}
