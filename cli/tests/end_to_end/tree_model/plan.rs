//! A random case: a tree, a reply, the deeds of a command as shell lines, and what they make of the tree.

use std::collections::BTreeSet;

use crate::scenes::kills::Dice;

use super::judge::{
    Expected, HARMLESS, LATER, PERSONS, RUNS_A_PROGRAM, Role, Rules, Turn, is_apart, is_ignored,
};
use super::tree::{Node, Tree, above, is_at_or_below, join, parent};

/// Folders of a tree. `ign` is ignored.
const FOLDERS: [&str; 8] = [
    "d",
    "d/e",
    "d/e/f",
    "two words",
    "ign",
    "ign/deep",
    ".hidden",
    "d/ü",
];
/// Names of files: plain ones, ignored ones, odd ones.
const NAMES: [&str; 16] = [
    "a",
    "b",
    "c.txt",
    "run",
    "x.o",
    "y.o",
    "-dash",
    "with blank",
    "it's",
    "star*",
    "new\nline",
    "\u{fffd}",
    "end ",
    ".dot",
    "é",
    "A",
];
const TEXTS: [&str; 4] = ["", "one\n", "one\ntwo\n", "no end"];
/// Where `build.sh` leads to if it is a symlink.
pub const LED_TO: &str = "scripts/build.sh";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A commit loop of one round; with `--on-failure restore` if so.
    Commit { restores: bool },
    /// An order of one attempt; by-products are kept if so.
    Order { keeps: bool },
    /// A turn of an agent in a phase or a spec.
    Turn(Turn),
}

#[expect(clippy::struct_excessive_bools, reason = "each is for itself")]
#[derive(Debug)]
pub struct Plan {
    pub family: Family,
    pub base: Tree,
    /// The files that git does not track yet.
    pub untracked: BTreeSet<String>,
    /// What an order may change.
    pub allowed: Vec<String>,
    pub reply: Reply,
    /// What the build does, the acceptance command, or the agent.
    pub lines: Vec<String>,
    /// The tree after each of the deeds.
    pub moments: Vec<Tree>,
    pub passes: bool,
    /// Whether the command changes what decides about it: then it has failed, whatever it ends with.
    pub breaks_seal: bool,
    /// Whether `build.sh` is a symlink.
    pub leads: bool,
    /// Whether there is a sandbox.
    pub is_held: bool,
    pub rules: Rules,
    /// The tree with the reply, and with all that the command has done.
    pub replied: Tree,
    pub built: Tree,
    /// Paths that the reply and the command change, with what is below.
    pub touched: BTreeSet<String>,
}

/// Changes by path: None removes.
#[derive(Debug)]
pub struct Reply {
    pub changes: Vec<(String, Option<String>)>,
    /// Changes this file by an edit of its whole text.
    pub edit: Option<(String, String, String)>,
    /// A path that nobody may write.
    pub refused: Option<String>,
}

pub fn pick<T: Clone>(dice: &mut Dice, all: &[T]) -> T {
    all[dice.below(all.len())].clone()
}

/// A word for a shell.
fn word(path: &str) -> String {
    format!("'./{}'", path.replace('\'', "'\\''"))
}

fn content(dice: &mut Dice) -> String {
    let text = pick(dice, &TEXTS);
    if text.is_empty() {
        String::new()
    } else {
        format!("{}{text}", dice.below(1000))
    }
}

/// The tree of a case, before anything happens.
struct Base {
    tree: Tree,
    untracked: BTreeSet<String>,
    forced: BTreeSet<String>,
    /// The git directory of a repository in it.
    nested: Option<String>,
}

fn base(dice: &mut Dice, has_untracked: bool, limits: Limits) -> Base {
    let mut tree = Tree::default();
    tree.write(".gitignore", 0o644, "/agent-config\n*.o\n/ign/\n");
    for _ in 0..3 + dice.below(12) {
        let folder = if dice.below(4) == 0 {
            ""
        } else {
            pick(dice, &FOLDERS)
        };
        let path = join(folder, pick(dice, &NAMES));
        let is_possible =
            !tree.has(&path) && above(&path).all(|above| tree.is_folder(above) || !tree.has(above));
        if !is_possible {
            continue;
        }
        if dice.below(8) == 0 {
            tree.write(&path, 0o644, "");
            tree.0.insert(
                path,
                Node::Link(pick(dice, &["a", "d", "nowhere", "../d/a"]).to_owned()),
            );
        } else {
            let mode = pick(dice, &[0o644, 0o644, 0o755, 0o600, 0o444]);
            tree.write(&path, mode, &content(dice));
        }
    }
    if dice.below(2) == 0 {
        let path = join(pick(dice, &["", "d", ".hidden"]), "key.o");
        tree.write(
            &path,
            pick(dice, &[0o644, 0o600]),
            &format!("key {}\n", dice.below(1000)),
        );
    }
    // What already exists, a program may run later.
    if dice.below(3) == 0 {
        tree.write(
            &join(pick(dice, &["", "d"]), pick(dice, &LATER)),
            0o644,
            "as it was\n",
        );
    }
    if dice.below(4) == 0 {
        tree.write("d/.gitignore", 0o644, "nothing-of-this-name\n");
    }
    if dice.below(4) == 0 {
        let mode = pick(dice, &[0o700, 0o750, 0o775]);
        if let Some(folder) = tree.0.get_mut("d") {
            *folder = Node::Folder(mode);
        }
    }
    let nested = nested(dice, &mut tree, has_untracked && !limits.keeps_top);
    let (mut untracked, mut forced) = (BTreeSet::new(), BTreeSet::new());
    for path in tree
        .paths()
        .filter(|path| !tree.is_folder(path) && path.as_str() != ".gitignore")
    {
        let top = nested
            .as_ref()
            .map(|git| git.strip_suffix("/.git").unwrap_or(git));
        if top.is_some_and(|top| is_at_or_below(path, top)) {
            untracked.extend(Some(path.clone()).filter(|path| !is_ignored(path)));
        } else if is_ignored(path) && dice.below(4) == 0 {
            forced.insert(path.clone());
        } else if has_untracked && dice.below(3) == 0 {
            untracked.insert(path.clone());
        }
    }
    Base {
        tree,
        untracked,
        forced,
        nested,
    }
}

/// A repository in the tree, for which git runs nothing.
fn nested(dice: &mut Dice, tree: &mut Tree, is_anywhere: bool) -> Option<String> {
    // Behind Landlock, nobody could make anything beside one that git does not ignore.
    let places: &[&str] = if is_anywhere {
        &["nest", "d/nest", "ign/nest"]
    } else {
        &["ign/nest"]
    };
    let path = pick(dice, places);
    let has_room = above(path).all(|above| tree.is_folder(above) || !tree.has(above));
    if !has_room || dice.below(3) > 0 {
        return None;
    }
    let git = if dice.below(3) == 0 && is_ignored(path) {
        path.to_owned()
    } else {
        join(path, ".git")
    };
    for name in ["HEAD", "objects/x", "refs/x", "hooks/update.sample"] {
        tree.write(&join(&git, name), 0o644, "ref: refs/heads/main\n");
    }
    tree.write(&join(&git, "config"), 0o644, HARMLESS);
    tree.write(&join(path, "source"), 0o644, "source\n");
    Some(git)
}

/// A reply that may be applied to this tree.
fn reply(
    dice: &mut Dice,
    tree: &mut Tree,
    untracked: &BTreeSet<String>,
    is_order: bool,
) -> (Reply, Vec<String>) {
    let is_simple = |path: &str| {
        path.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/.".contains(&byte))
    };
    let may_be_written = |path: &str| {
        is_simple(path)
            && !is_ignored(path)
            && ![".git", "nest/"].iter().any(|no| path.contains(no))
    };
    let files: Vec<String> = (tree.paths())
        .filter(|path| tree.is_file(path) && may_be_written(path) && !path.starts_with('.'))
        .cloned()
        .collect();
    let mut reply = Reply {
        changes: Vec::new(),
        edit: None,
        refused: None,
    };
    let mut allowed = Vec::new();
    for _ in 0..=dice.below(3) {
        let old = (dice.below(2) == 0 && !files.is_empty()).then(|| pick(dice, &files).clone());
        let path = old.unwrap_or_else(|| {
            let folder = pick(dice, &["", "d", "d/e", "made/by/reply"]);
            join(folder, pick(dice, &["written", "a", "b", "c.txt"]))
        });
        // Some file systems take two spellings for one file.
        let is_taken = {
            let lower = path.to_lowercase();
            let is_one = |other: &String| {
                let other = other.to_lowercase();
                is_at_or_below(&lower, &other) || is_at_or_below(&other, &lower)
            };
            let is_spelt_otherwise =
                |other: &String| *other != path && other.to_lowercase() == lower;
            allowed.iter().any(is_one) || tree.paths().any(is_spelt_otherwise)
        };
        let fits =
            !tree.has(&path) && above(&path).all(|above| tree.is_folder(above) || !tree.has(above));
        if is_taken || !(fits || tree.is_file(&path)) {
            continue;
        }
        allowed.push(path.clone());
        let number = dice.below(1000);
        let text = tree.text(&path).unwrap_or_default().to_owned();
        // It may hold keys, so no model is shown it.
        let is_shown = !untracked.contains(&path) && path.rsplit('/').next() != Some(".envrc");
        let is_deleted = dice.below(4) == 0 || !(is_shown || text.is_empty());
        if !is_order && tree.is_file(&path) && is_deleted {
            reply.changes.push((path, None));
        } else if !is_order
            && reply.edit.is_none()
            && text.ends_with('\n')
            && is_shown
            && dice.below(2) == 0
        {
            reply.edit = Some((path, text, format!("edited {number}\n")));
        } else {
            reply
                .changes
                .push((path, Some(format!("by the reply {number}\n"))));
        }
    }
    if reply.changes.is_empty() && reply.edit.is_none() {
        reply
            .changes
            .push(("last/resort".to_owned(), Some("1\n".to_owned())));
        allowed.push("last/resort".to_owned());
    }
    if dice.below(8) == 0 {
        let refused = [
            ".git/config",
            "../outside",
            "d/.git/hooks/x",
            "/etc/x",
            "d//x",
            "sub/.GIT/config",
        ];
        reply.refused = Some(pick(dice, &refused).to_owned());
        return (reply, allowed);
    }
    for (path, text) in &reply.changes {
        match text {
            Some(text) => {
                let mode = if let Some(Node::File(mode, _)) = tree.get(path) {
                    *mode
                } else {
                    0o644
                };
                tree.write(path, mode, text);
            }
            None => tree.remove(path),
        }
    }
    // Where a reply deletes one file and makes another, their folder stays what it was.
    if reply.changes.iter().any(|(_, text)| text.is_none()) {
        *tree = tree.clone().without_empty_folders();
    }
    if let Some((path, _, new)) = &reply.edit {
        let Some(Node::File(_, text)) = tree.0.get_mut(path) else {
            unreachable!("{path} is a file")
        };
        text.clone_from(new);
    }
    (reply, allowed)
}

impl Plan {
    pub fn new(dice: &mut Dice, family: Family, limits: Limits) -> Self {
        let is_order = matches!(family, Family::Order { .. });
        let Base {
            tree: mut base,
            untracked,
            forced,
            nested,
        } = base(dice, !is_order, limits);
        if let Family::Turn(turn) = family {
            turn.settings()
                .for_each(|(path, text)| base.write(path, 0o644, text));
        }
        let mut replied = base.clone();
        let (reply, mut allowed) = match family {
            Family::Turn(_) => (
                Reply {
                    changes: Vec::new(),
                    edit: None,
                    refused: None,
                },
                Vec::new(),
            ),
            Family::Commit { .. } | Family::Order { .. } => {
                reply(dice, &mut replied, &untracked, is_order)
            }
        };
        let leads = dice.below(4) == 0 && matches!(family, Family::Commit { .. });
        let mut sealed = match family {
            Family::Commit { .. } => vec!["build.sh"],
            Family::Order { .. } => vec!["scripts/verify.sh"],
            Family::Turn(_) => Vec::new(),
        };
        sealed.extend(leads.then_some(LED_TO));
        let mut deeds = Deeds {
            sealed,
            breaks_seal: false,
            nested: nested.clone(),
            tree: replied.clone(),
            lines: Vec::new(),
            remade: Vec::new(),
            // Whoever breaks the seal is run again.
            frozen: base
                .paths()
                .filter(|path| path.ends_with(".gitignore"))
                .cloned()
                .collect(),
            limits,
        };
        if let Family::Turn(turn) = family {
            let held = turn
                .settings()
                .filter(|_| turn.role == Role::Builder || limits.holds_settings);
            deeds.frozen.extend(held.map(|(path, _)| path.to_owned()));
        }
        deeds.frozen.extend(nested);
        let mut moments = vec![replied.clone()];
        for _ in 0..dice.below(9) {
            deeds.add(dice);
            moments.push(deeds.tree.clone());
        }
        // A command of an order may also change a file that only it writes.
        if is_order && dice.below(2) == 0 {
            let is_possible =
                |path: &str| above(path).all(|above| base.is_folder(above) || !base.has(above));
            let mine: Vec<&String> = deeds
                .tree
                .paths()
                .filter(|path| {
                    deeds.tree.is_file(path) && !base.is_folder(path) && is_possible(path)
                })
                .collect();
            allowed.extend(
                mine.iter()
                    .filter(|path| {
                        path.is_ascii() && !path.contains(['*', '\n', '\'']) && !path.ends_with(' ')
                    })
                    .take(1)
                    .map(|path| (*path).clone()),
            );
        }
        allowed.sort();
        allowed.dedup();
        allowed.retain(|path| !path.starts_with(".git") && !path.contains("/.git"));
        let scope = (family == Family::Order { keeps: false }).then(|| allowed.clone());
        let rules = Rules {
            scope,
            is_order,
            forced,
        };
        let Deeds {
            tree: built,
            lines,
            remade,
            breaks_seal,
            ..
        } = deeds;
        let changed = |from: &Tree, to: &Tree| -> Vec<String> {
            let all = from.paths().chain(to.paths());
            all.filter(|path| from.get(path) != to.get(path))
                .cloned()
                .collect()
        };
        let touched = changed(&base, &replied)
            .into_iter()
            .chain(changed(&replied, &built));
        let touched = touched.chain(remade).collect();
        let passes = dice.below(2) == 0 && !breaks_seal;
        Self {
            family,
            base,
            untracked,
            allowed,
            reply,
            lines,
            moments,
            passes,
            breaks_seal,
            leads,
            is_held: limits.is_held,
            rules,
            replied,
            built,
            touched,
        }
    }

    /// The script of the command.
    ///
    /// An order runs it before the model is asked, too, and what it does to ignored files then stays. So if that matters to the deeds,
    /// it does them only when the reply is there.
    pub fn script(&self, leaves_ignored: bool) -> String {
        let exit = u8::from(!self.passes && !self.breaks_seal);
        let is_order = matches!(self.family, Family::Order { .. });
        let written = self
            .reply
            .changes
            .iter()
            .find_map(|(path, text)| Some((path, text.as_deref()?)));
        let begins = match written.filter(|_| is_order && !leaves_ignored) {
            Some((path, text)) => {
                format!(
                    "[ \"$(cat {} 2>&1)\" = '{}' ] || exit 1\n",
                    word(path),
                    text.trim_end()
                )
            }
            None => String::new(),
        };
        format!(
            "#!/bin/sh\n{begins}{}\nexit {exit}\n",
            self.lines.join("\n")
        )
    }

    /// What must be there when the run is over.
    pub fn ends(&self) -> Expected {
        let judged = self.rules.judge(&self.replied, &self.built);
        let is_reverted =
            !self.passes && !matches!(self.family, Family::Commit { restores: false });
        if self.reply.refused.is_some() {
            Expected::exactly(self.base.clone())
        } else if is_reverted {
            Expected {
                tree: self.reverted(&judged),
                loose: judged.loose,
            }
        } else {
            judged
        }
    }

    /// What may be there between two steps: before the reply, before the build, after it.
    pub fn stages(&self) -> Vec<Expected> {
        let begun = Expected::exactly(self.base.clone());
        if self.reply.refused.is_some() {
            return vec![begun];
        }
        let judged = self.rules.judge(&self.replied, &self.built);
        let replied = Expected::exactly(self.replied.clone());
        vec![begun, replied, judged, self.ends()]
    }

    /// What git accounts for is as before the run, and the rest as the command has left it.
    pub fn reverted(&self, ended: &Expected) -> Tree {
        // What is ignored in a folder goes with it where a file was before that comes back; an ignored one does not.
        let is_file = |above: &str| {
            self.base.has(above) && !self.base.is_folder(above) && self.rules.accounts_for(above)
        };
        let has_room = |path: &str| !above(path).any(is_file);
        let ignored = ended
            .tree
            .0
            .iter()
            .filter(|(path, _)| !self.rules.accounts_for(path) && has_room(path));
        let old = self
            .base
            .0
            .iter()
            .filter(|(path, _)| self.rules.accounts_for(path));
        Tree(
            ignored
                .chain(old)
                .map(|(path, node)| (path.clone(), node.clone()))
                .collect(),
        )
    }

    /// Whether a folder that has come in the place of a file that comes back has an ignored file in it, or an ignored file has come in
    /// the place of a folder of files.
    pub fn has_ignored_in_the_way(&self) -> bool {
        let is_in_the_way = |path: &String| {
            let was_file = |above: &str| self.base.has(above) && !self.base.is_folder(above);
            !self.rules.accounts_for(path) && above(path).any(was_file)
        };
        let is_ignored_file = |above: &str| {
            self.built.has(above) && !self.built.is_folder(above) && !self.rules.accounts_for(above)
        };
        let has_no_folder =
            |path: &String| self.rules.accounts_for(path) && above(path).any(is_ignored_file);
        self.built.paths().any(is_in_the_way) || self.base.paths().any(has_no_folder)
    }

    pub fn exit_code(&self) -> i32 {
        i32::from(!self.passes || self.reply.refused.is_some())
    }
}

/// What a command does, one line after another, on a tree in memory.
struct Deeds {
    tree: Tree,
    /// What decides about the command, and whether it has changed any of it.
    sealed: Vec<&'static str>,
    breaks_seal: bool,
    /// The git directory of a repository in the tree.
    nested: Option<String>,
    lines: Vec<String>,
    /// Folders that may be in the end what they were, although everything in them was removed.
    remade: Vec<String>,
    /// Nothing more is done at, above or below these.
    frozen: BTreeSet<String>,
    limits: Limits,
}

/// What a command does not do in this case.
#[expect(clippy::struct_excessive_bools, reason = "each is for itself")]
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The sandbox lets nobody make a set-user-ID program.
    pub drops_set_id: bool,
    /// Landlock lets nobody make or remove anything at the top of the tree, or give a file a name in another folder.
    pub keeps_top: bool,
    pub leaves_ignored: bool,
    /// A person who saves a file in place would change the other one.
    pub links_nothing: bool,
    /// The sandbox holds what a run is configured by, or a run goes on that was killed: it reads that again.
    pub holds_settings: bool,
    /// There is a sandbox, which holds what decides about the command.
    pub is_held: bool,
}

impl Deeds {
    fn add(&mut self, dice: &mut Dice) {
        let number = dice.below(1000);
        match dice.below(29) {
            0..3 => self.write(dice, &format!("built {number}\n")),
            3 => self.write_new(dice, &format!("new {number}\n")),
            4 | 5 => self.remove(dice),
            6 => self.chmod(dice),
            7 | 8 => self.rename(dice),
            9 => self.link(dice),
            10 => self.file_to_folder(dice, &format!("inner {number}\n")),
            11 => self.folder_to_file(dice, &format!("flat {number}\n")),
            12 => self.fifo(dice),
            13 => self.named(dice, &PERSONS),
            14 | 15 => self.named(dice, &LATER),
            16 => self.repository(dice),
            17 => self.make_folder(dice),
            18 => self.remake(dice),
            19 | 20 => self.seal(dice),
            21 | 22 => self.ignored_repository(dice),
            23 | 24 => self.in_nested(dice),
            25..28 => self.ignored_file(dice, &format!("instead {number}\n")),
            _ => self.hard_link(dice),
        }
    }

    fn is_free(&self, path: &str) -> bool {
        let is_frozen =
            |frozen: &String| is_at_or_below(frozen, path) || is_at_or_below(path, frozen);
        let has_ignored = || {
            is_ignored(path)
                || self
                    .tree
                    .at_or_below(path)
                    .iter()
                    .any(|path| is_ignored(path))
        };
        let is_left = self.limits.leaves_ignored && has_ignored();
        !is_left && !self.frozen.iter().any(is_frozen)
    }

    /// Whether a name can come or go there.
    fn may_rename(&self, path: &str) -> bool {
        !(self.limits.keeps_top && parent(path).is_empty())
    }

    fn any(&self, dice: &mut Dice, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let all: Vec<&String> = self
            .tree
            .paths()
            .filter(|path| self.is_free(path) && is_wanted(path))
            .collect();
        (!all.is_empty()).then(|| pick(dice, &all).clone())
    }

    /// A path at which nothing is, in a folder that is there.
    fn new_path(&self, dice: &mut Dice) -> Option<String> {
        let folder = self
            .any(dice, |path| self.tree.is_folder(path))
            .unwrap_or_default();
        let folder = if dice.below(4) == 0 {
            String::new()
        } else {
            folder
        };
        let path = join(&folder, pick(dice, &NAMES));
        (!self.tree.has(&path) && self.is_free(&path) && self.may_rename(&path)).then_some(path)
    }

    fn run(&mut self, line: &str) {
        self.lines.push(format!(
            "{line} || echo deed {} failed",
            self.lines.len() + 1
        ));
    }

    fn write(&mut self, dice: &mut Dice, text: &str) {
        let Some(path) = self.any(dice, |path| self.tree.is_file(path)) else {
            return;
        };
        let Some(Node::File(mode, _)) = self.tree.get(&path) else {
            return;
        };
        let is_in_place = mode & 0o200 != 0 && (dice.below(2) == 0 || !self.may_rename(&path));
        if !is_in_place && !self.may_rename(&path) {
            return;
        }
        let mode = if is_in_place { *mode } else { 0o644 };
        let to = word(&path);
        self.run(&if is_in_place {
            format!("printf '%s' '{text}' > {to}")
        } else {
            let saved = word(&join(parent(&path), "saved.tmp"));
            format!("{{ printf '%s' '{text}' > {saved} && mv -fT {saved} {to}; }}")
        });
        self.tree.write(&path, mode, text);
    }

    fn write_new(&mut self, dice: &mut Dice, text: &str) {
        let Some(path) = self.new_path(dice) else {
            return;
        };
        let path = if dice.below(2) == 0 {
            join(&path, "within")
        } else {
            path
        };
        self.put(&path, text);
    }

    /// A new file, with the folders that it needs.
    fn put(&mut self, path: &str, text: &str) {
        let folder = word(parent(path));
        self.run(&format!(
            "{{ mkdir -p {folder} && printf '%s' '{text}' > {}; }}",
            word(path)
        ));
        self.tree.write(path, 0o644, text);
    }

    fn remove(&mut self, dice: &mut Dice) {
        let Some(path) = self.any(dice, |path| self.may_rename(path)) else {
            return;
        };
        self.run(&format!("rm -rf {}", word(&path)));
        self.tree.remove(&path);
    }

    fn chmod(&mut self, dice: &mut Dice) {
        let Some(path) = self.any(dice, |path| {
            !matches!(self.tree.get(path), Some(Node::Link(_) | Node::Other))
        }) else {
            return;
        };
        let is_folder = self.tree.is_folder(&path);
        let mode = if is_folder {
            pick(dice, &[0o700, 0o755, 0o711, 0o777])
        } else {
            pick(dice, &[0o755, 0o600, 0o444, 0o4755, 0o2755])
        };
        let is_set_id = mode & 0o6000 != 0;
        let line = format!("chmod {mode:o} {}", word(&path));
        if mode & 0o4000 != 0 && self.limits.drops_set_id {
            self.lines
                .push(format!("! {line} || echo nobody refused it"));
            self.frozen.insert(path);
            return;
        }
        self.run(&line);
        if let Some(Node::Folder(now) | Node::File(now, _)) = self.tree.0.get_mut(&path) {
            *now = mode;
        }
        if is_set_id {
            self.frozen.insert(path);
        }
    }

    fn rename(&mut self, dice: &mut Dice) {
        let (Some(from), Some(to)) = (
            self.any(dice, |path| self.may_rename(path)),
            self.new_path(dice),
        ) else {
            return;
        };
        if is_at_or_below(&to, &from) {
            return;
        }
        self.run(&format!("mv -T {} {}", word(&from), word(&to)));
        self.tree.rename(&from, &to);
    }

    fn link(&mut self, dice: &mut Dice) {
        let Some(path) = self.new_path(dice) else {
            return;
        };
        let target = pick(dice, &["a", "/etc/hostname", "..", "nowhere", "/tmp"]);
        self.run(&format!("ln -sT '{target}' {}", word(&path)));
        self.tree.0.insert(path, Node::Link(target.to_owned()));
    }

    fn file_to_folder(&mut self, dice: &mut Dice, text: &str) {
        let Some(path) = self.any(dice, |path| {
            !self.tree.is_folder(path) && self.may_rename(path)
        }) else {
            return;
        };
        let name = pick(dice, &["inner", "x.o", ".envrc", "deep/inner"]);
        let inner = join(&path, name);
        if self.limits.leaves_ignored && is_ignored(&inner) {
            return;
        }
        self.run(&format!("rm -f {}", word(&path)));
        self.tree.remove(&path);
        self.put(&inner, text);
    }

    /// A file of the name of the ignored folder would not be ignored.
    fn folder_to_file(&mut self, dice: &mut Dice, text: &str) {
        let Some(path) = self.any(dice, |path| {
            self.tree.is_folder(path) && self.may_rename(path) && path != "ign"
        }) else {
            return;
        };
        self.run(&format!("rm -rf {}", word(&path)));
        self.tree.remove(&path);
        self.put(&path, text);
    }

    fn fifo(&mut self, dice: &mut Dice) {
        let Some(path) = self.new_path(dice) else {
            return;
        };
        self.run(&format!("mkfifo {}", word(&path)));
        self.tree.0.insert(path, Node::Other);
    }

    /// A file of one of these names, in a folder that is there or in a new one.
    fn named(&mut self, dice: &mut Dice, names: &[&str]) {
        let folder = self
            .any(dice, |path| self.tree.is_folder(path))
            .unwrap_or_default();
        let folder = if dice.below(3) == 0 {
            join(&folder, "fresh")
        } else {
            folder
        };
        let path = join(&folder, pick(dice, names));
        let stands_in_the_way = |path: &str| self.tree.has(path) && !self.tree.is_folder(path);
        let top = path.split('/').next().unwrap_or_default();
        if !self.is_free(&path)
            || !(self.tree.has(top) || self.may_rename(top))
            || above(&path).any(stands_in_the_way)
            || self.tree.is_folder(&path)
            || matches!(
                self.tree.get(&path),
                Some(Node::Link(_) | Node::Other | Node::File(0o444, _))
            )
        {
            return;
        }
        let text = pick(dice, &["*\n", "planted\n"]);
        let mode = if let Some(Node::File(mode, _)) = self.tree.get(&path) {
            *mode
        } else {
            0o644
        };
        self.put(&path, text);
        self.tree.write(&path, mode, text);
        // It is sealed whether it exists or not.
        self.breaks_seal |= self.sealed.contains(&"build.sh") && PERSONS.contains(&&*path);
    }

    /// A repository, with a work tree or without, that has a file of its own.
    fn repository(&mut self, dice: &mut Dice) {
        let Some(path) = self.new_path(dice).filter(|path| !is_ignored(path)) else {
            return;
        };
        let git = if dice.below(2) == 0 {
            join(&path, ".git")
        } else {
            path.clone()
        };
        for name in ["HEAD", "config", "objects/x", "refs/x"] {
            self.put(&join(&git, name), "ref: refs/heads/main\n");
        }
        self.put(&join(&path, "source"), "source\n");
        self.frozen.insert(path);
    }

    /// Git runs what the configuration names, and hooks, wherever a repository is.
    fn ignored_repository(&mut self, dice: &mut Dice) {
        let folder = pick(dice, &["ign", "ign/deep", "ign/fresh"]);
        let path = join(folder, pick(dice, &["clone", "bare"]));
        let stands_in_the_way = |path: &str| self.tree.has(path) && !self.tree.is_folder(path);
        let may_come = self.tree.has("ign") || self.may_rename("ign");
        let is_free = self.is_free(&path) && !self.tree.has(&path);
        if !is_free || !may_come || above(&path).any(stands_in_the_way) {
            return;
        }
        let git = if path.ends_with("clone") {
            join(&path, ".git")
        } else {
            path.clone()
        };
        self.put(&join(&path, "source"), "source\n");
        for name in ["HEAD", "objects/x", "refs/x"] {
            self.put(&join(&git, name), "ref: refs/heads/main\n");
        }
        self.put(
            &join(&git, "config"),
            pick(dice, &[HARMLESS, RUNS_A_PROGRAM]),
        );
        if dice.below(3) == 0 {
            let name = pick(dice, &["post-checkout", "post-checkout.sample"]);
            self.put(&join(&git, &join("hooks", name)), "true\n");
        }
        self.frozen.insert(path);
    }

    /// Removes or replaces a file that git ignores by its name, which is no product.
    fn ignored_file(&mut self, dice: &mut Dice, text: &str) {
        let path = self.any(dice, |path| {
            is_apart(path) && !self.tree.is_folder(path) && self.may_rename(path)
        });
        let Some(path) = path else {
            return;
        };
        self.run(&format!("rm -f {}", word(&path)));
        self.tree.remove(&path);
        match dice.below(3) {
            0 => {}
            1 => self.put(&path, text),
            _ => self.put(&join(&path, "inner"), text),
        }
    }

    /// Makes git run a program in a repository that already exists. It does not stay, wherever that is.
    fn in_nested(&mut self, dice: &mut Dice) {
        let Some(git) = self.nested.clone() else {
            return;
        };
        let (config, hooks) = (word(&join(&git, "config")), word(&join(&git, "hooks")));
        let line = match dice.below(3) {
            0 => format!("printf '%s' '{RUNS_A_PROGRAM}' > {config}"),
            1 => format!("echo true > {hooks}/post-checkout"),
            _ => format!("{{ rm -f {config}; ln -s /etc/hostname {config}; }}"),
        };
        self.lines.push(format!("{{ {line}; }} 2>&- || :"));
        self.remade.push(join(&git, "config"));
    }

    /// Changes what decides about the command, or removes it.
    fn seal(&mut self, dice: &mut Dice) {
        if self.sealed.is_empty() {
            return;
        }
        let sealed = pick(dice, &self.sealed);
        let path = word(sealed);
        let replaces =
            format!("{{ echo exit 0 > sealed.o && mv -fT sealed.o {path}; }}; rm -f sealed.o");
        let line = match dice.below(3) {
            0 => replaces,
            1 => format!("rm -f {path}"),
            _ if sealed == LED_TO => return,
            _ => format!("{{ rm -f {path} && mkdir {path}; }}"),
        };
        // No sandbox holds a symlink.
        let is_link = sealed == "build.sh" && self.sealed.contains(&LED_TO);
        self.breaks_seal |= !self.limits.is_held || (is_link && self.may_rename(sealed));
        self.run(&format!("{{ {line}; }} 2>&-"));
    }

    fn make_folder(&mut self, dice: &mut Dice) {
        let Some(path) = self.new_path(dice) else {
            return;
        };
        let is_closed = dice.below(3) == 0;
        self.put(&join(&path, "in it"), "in it\n");
        if is_closed {
            self.run(&format!("chmod 000 {}", word(&path)));
            self.tree.0.insert(path.clone(), Node::Folder(0));
            self.frozen.insert(path);
        }
    }

    /// Removes a folder and makes it again as it was, but for one file.
    fn remake(&mut self, dice: &mut Dice) {
        let is_plain =
            |path: &str| !matches!(self.tree.get(path), Some(Node::Link(_) | Node::Other));
        let Some(path) = self.any(dice, |path| {
            self.tree.is_folder(path)
                && self.may_rename(path)
                && self
                    .tree
                    .at_or_below(path)
                    .iter()
                    .all(|path| is_plain(path))
        }) else {
            return;
        };
        self.run(&format!("rm -rf {}", word(&path)));
        let all = self.tree.at_or_below(&path);
        self.remade.push(path.clone());
        let files: Vec<&String> = all.iter().filter(|path| self.tree.is_file(path)).collect();
        let left_out = (!files.is_empty()).then(|| pick(dice, &files).clone());
        for path in &all {
            let line = match self.tree.get(path) {
                Some(Node::Folder(_)) => format!("mkdir {}", word(path)),
                Some(Node::File(..)) if left_out.as_ref() == Some(path) => continue,
                Some(Node::File(_, text)) => format!("printf '%s' '{text}' > {}", word(path)),
                _ => unreachable!("only plain ones"),
            };
            self.run(&line);
        }
        for path in all.iter().rev() {
            if let Some(Node::Folder(mode) | Node::File(mode, _)) = self.tree.get(path)
                && left_out.as_ref() != Some(path)
            {
                let line = format!("chmod {mode:o} {}", word(path));
                self.run(&line);
            }
        }
        if let Some(path) = left_out {
            self.tree.remove(&path);
        }
    }

    /// A second name of a file; then neither is changed any more, since both would be.
    fn hard_link(&mut self, dice: &mut Dice) {
        let (Some(from), Some(to)) = (
            self.any(dice, |path| self.tree.is_file(path)),
            self.new_path(dice),
        ) else {
            return;
        };
        // The folders above a repository are mounts of their own.
        let is_mounted = self.nested.is_some() && self.limits.is_held;
        if self.limits.links_nothing
            || is_mounted
            || (self.limits.keeps_top && parent(&from) != parent(&to))
        {
            return;
        }
        self.run(&format!("ln -T {} {}", word(&from), word(&to)));
        let node = self.tree.get(&from).unwrap().clone();
        self.tree.0.insert(to.clone(), node);
        self.frozen.extend([from, to]);
    }
}
