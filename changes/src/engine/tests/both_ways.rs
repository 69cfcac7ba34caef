//! The two ways to take account of a command: the layer of an overlay, and snapshots of the tree. The same random command in two copies
//! of the same random tree has to leave the same.
//!
//! `PRODUCER_CASES=2000` tries more, `PRODUCER_SEED` begins elsewhere. Whatever differs is printed with its seed, made as small as it gets.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use code_commit_runner::{Access, Cancel, Command, Confinement, Env, Mode, View, helper_is, probe};
use proptest::collection::vec;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

use super::touched::attic;
use super::*;
use crate::overlay::Folders;

/// Cases without `PRODUCER_CASES`.
const CASES: u64 = 40;
/// Stands for the one byte that is not UTF-8.
const NOT_UTF8: char = '\u{fffd}';

/// `ign` is ignored as a folder, whatever ends in `.o` by its name, and `made` holds products of the build.
const RULES: &str = "/ign/\n*.o\n.env\n";
const PATHS: [&str; 46] = [
    "a",
    "b",
    "d",
    "d/a",
    "d/b",
    "d/e",
    "d/e/a",
    "d/e/b",
    "d/ü",
    "A",
    "x.o",
    "d/x.o",
    "d/e/y.o",
    ".env",
    "d/.env",
    "out.o/a",
    "out.o",
    "ign",
    "ign/a",
    "ign/deep/b",
    "ign/deep",
    "ign/.env",
    "made",
    "made/x",
    "made/deep/y",
    "tool",
    "tool/CACHEDIR.TAG",
    "tool/z.o",
    "nest",
    "nest/a",
    "nest/x.o",
    "ign/nest",
    "two words/it's",
    "new\nline",
    "-dash",
    "\u{fffd}",
    "d/end ",
    "star*",
    "empty",
    "empty/er",
    "build.sh",
    "conftest.py",
    ".envrc",
    "d/.gitignore",
    ".gitignore",
    "Cargo.lock",
];
const TEXTS: [&str; 4] = ["", "one\n", "two\n", "no end"];
const FILE_MODES: [&str; 7] = ["644", "755", "600", "444", "000", "u+s", "g+s"];
const FOLDER_MODES: [&str; 6] = ["755", "700", "750", "775", "500", "000"];

/// One line of a shell script. Some fail, as they would in any script without `set -e`.
#[derive(Debug, Clone)]
enum Deed {
    Write(String, &'static str),
    Append(String, &'static str),
    Chmod(String, &'static str),
    ChmodFolder(String, &'static str),
    Remove(String),
    RemoveAll(String),
    Move(String, String),
    Folder(String),
    Symlink(String, &'static str),
    FileToFolder(String, &'static str),
    FolderToFile(String, &'static str),
    Anew(String, String),
    Touch(String),
    ChangeAndBack(String),
    HardLink(String, String),
    Fifo(String),
    Repository(String, bool, &'static str),
    Hook(String),
    IgnoreAll(String),
    Add(String),
}

/// Configurations of a repository: the last two make git run a program, or read a file.
const CONFIGS: [&str; 4] = [
    "[core]\n\tbare = false\n",
    "",
    "[core]\n\tfsmonitor = ./run\n",
    "[include]\n\tpath = ../a\n",
];

fn word(path: &str) -> String {
    format!("'./{}'", path.replace('\'', "'\\''"))
}

impl Deed {
    fn line(&self) -> String {
        let above = |path: &str| format!("mkdir -p \"$(dirname {})\"", word(path));
        match self {
            Self::Write(path, text) => {
                format!(
                    "{}; [ -p {1} ] || printf '%s' '{text}' > {1}",
                    above(path),
                    word(path)
                )
            }
            Self::Append(path, text) => {
                format!("[ -p {0} ] || printf '%s' '{text}' >> {0}", word(path))
            }
            Self::Chmod(path, mode) => {
                format!("[ -f {0} ] && [ ! -L {0} ] && chmod {mode} {0}", word(path))
            }
            Self::ChmodFolder(path, mode) => {
                format!("[ -d {0} ] && [ ! -L {0} ] && chmod {mode} {0}", word(path))
            }
            Self::Remove(path) => format!("rm -f {}", word(path)),
            Self::RemoveAll(path) => format!("rm -rf {}", word(path)),
            Self::Move(from, to) => format!("mv -f {} {}", word(from), word(to)),
            Self::Folder(path) => format!("mkdir -p {}", word(path)),
            Self::Symlink(path, to) => {
                format!("{}; ln -sfn {to} {}", above(path), word(path))
            }
            Self::FileToFolder(path, text) => format!(
                "[ -d {0} ] || {{ rm -f {0}; mkdir {0}; printf '%s' '{text}' > {0}/in; printf x > {0}/in.o; }}",
                word(path)
            ),
            Self::FolderToFile(path, text) => format!(
                "[ -d {0} ] && {{ rm -rf {0}; printf '%s' '{text}' > {0}; }}",
                word(path)
            ),
            Self::Anew(path, inner) => {
                let inner = inner.rsplit('/').next().unwrap_or_default();
                format!(
                    "rm -rf {0}; mkdir -p {0}; printf anew > {0}/{1}",
                    word(path),
                    word(inner)
                )
            }
            Self::Touch(path) => format!("touch -c {}", word(path)),
            Self::ChangeAndBack(path) => format!(
                "[ -f {0} ] && {{ cp -p {0} {0}.kept; echo more >> {0}; cat {0}.kept > {0}; rm -f {0}.kept; }}",
                word(path)
            ),
            Self::HardLink(path, to) => format!("ln {} {}", word(path), word(to)),
            Self::Fifo(path) => format!("mkfifo {}", word(path)),
            Self::Repository(path, is_bare, config) => {
                let git = if *is_bare {
                    path.clone()
                } else {
                    format!("{path}/.git")
                };
                format!(
                    "mkdir -p {0}/objects {0}/refs; echo 'ref: refs/heads/main' > {0}/HEAD; printf '%s' '{config}' > {0}/config",
                    word(&git)
                )
            }
            Self::Hook(path) => format!(
                "mkdir -p {0}/.git/hooks; echo true > {0}/.git/hooks/post-checkout",
                word(path)
            ),
            Self::IgnoreAll(path) => format!("[ -d {0} ] && echo '*' > {0}/.gitignore", word(path)),
            Self::Add(path) => format!("git --literal-pathspecs add -f -- {}", word(path)),
        }
    }
}

fn some_path() -> impl Strategy<Value = String> {
    select(&PATHS[..]).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = &'static str> {
    select(&TEXTS[..])
}

/// What a tree is made of.
fn maker() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => (some_path(), text()).prop_map(|(path, text)| Deed::Write(path, text)),
        2 => (some_path(), select(&["644", "755", "600", "444", "u+s"][..]))
            .prop_map(|(path, mode)| Deed::Chmod(path, mode)),
        1 => (some_path(), select(&["700", "750", "775"][..]))
            .prop_map(|(path, mode)| Deed::ChmodFolder(path, mode)),
        2 => (some_path(), select(&["a", "d", "nowhere", "../a"][..]))
            .prop_map(|(path, to)| Deed::Symlink(path, to)),
        2 => some_path().prop_map(Deed::Folder),
        // Git would wait for one that has the name of its rules.
        1 => select(&["b", "d/b", "ign/a", "x.o"][..]).prop_map(|path| Deed::Fifo(path.to_owned())),
        2 => some_path().prop_map(Deed::Add),
    ]
}

/// A repository, which git would not add to the first commit.
fn repository(configs: &'static [&str]) -> impl Strategy<Value = Deed> {
    let folder = select(&["nest", "ign/nest", "d", "new", "ign/new", "empty"][..]);
    (folder, any::<bool>(), select(configs))
        .prop_map(|(path, is_bare, config)| Deed::Repository(path.to_owned(), is_bare, config))
}

/// What a command does.
fn deed() -> impl Strategy<Value = Deed> {
    let folder = select(&["nest", "ign/nest", "d", "new", "ign/new", "empty"][..]);
    prop_oneof![
        4 => (some_path(), text()).prop_map(|(path, text)| Deed::Write(path, text)),
        2 => (some_path(), text()).prop_map(|(path, text)| Deed::Append(path, text)),
        2 => (some_path(), select(&FILE_MODES[..])).prop_map(|(path, mode)| Deed::Chmod(path, mode)),
        1 => (some_path(), select(&FOLDER_MODES[..]))
            .prop_map(|(path, mode)| Deed::ChmodFolder(path, mode)),
        2 => some_path().prop_map(Deed::Remove),
        2 => some_path().prop_map(Deed::RemoveAll),
        3 => (some_path(), some_path()).prop_map(|(from, to)| Deed::Move(from, to)),
        1 => some_path().prop_map(Deed::Folder),
        2 => (some_path(), select(&["a", "d", "nowhere", "../a"][..]))
            .prop_map(|(path, to)| Deed::Symlink(path, to)),
        2 => (some_path(), text()).prop_map(|(path, text)| Deed::FileToFolder(path, text)),
        2 => (some_path(), text()).prop_map(|(path, text)| Deed::FolderToFile(path, text)),
        2 => (some_path(), some_path()).prop_map(|(path, inner)| Deed::Anew(path, inner)),
        1 => some_path().prop_map(Deed::Touch),
        1 => some_path().prop_map(Deed::ChangeAndBack),
        1 => (some_path(), some_path()).prop_map(|(path, to)| Deed::HardLink(path, to)),
        1 => some_path().prop_map(Deed::Fifo),
        1 => repository(&CONFIGS),
        1 => folder.prop_map(|path| Deed::Hook(path.to_owned())),
        1 => some_path().prop_map(Deed::IgnoreAll),
    ]
}

/// What may stay of what the command did.
#[derive(Debug, Clone)]
enum Keeps {
    /// What a build may change.
    Build,
    /// These files, as for a command of an order.
    Files(Vec<String>),
    Nothing,
}

#[derive(Debug, Clone)]
struct Case {
    committed: Vec<Deed>,
    uncommitted: Vec<Deed>,
    command: Vec<Deed>,
    keeps: Keeps,
}

fn case() -> impl Strategy<Value = Case> {
    let later = prop_oneof![8 => maker(), 1 => repository(&CONFIGS[..2])];
    let keeps = prop_oneof![
        4 => Just(Keeps::Build),
        1 => vec(select(&PATHS[..24]), 1..4)
            .prop_map(|files| Keeps::Files(files.into_iter().map(str::to_owned).collect())),
        1 => Just(Keeps::Nothing),
    ];
    (
        vec(maker(), 0..12),
        vec(later, 0..12),
        vec(deed(), 1..=12),
        keeps,
    )
        .prop_map(|(committed, uncommitted, command, keeps)| Case {
            committed,
            uncommitted,
            command,
            keeps,
        })
}

fn script(deeds: &[Deed]) -> String {
    deeds.iter().map(|deed| deed.line() + "\n").collect()
}

fn shell(script: &str) -> [OsString; 3] {
    let mut bytes = b"exec 2>/dev/null\n".to_vec();
    for char in script.chars() {
        match char {
            NOT_UTF8 => bytes.push(0xFF),
            char => bytes.extend(char.to_string().as_bytes()),
        }
    }
    ["sh".into(), "-c".into(), OsString::from_vec(bytes)]
}

/// Everything in a tree, with modes and content.
type All = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// What came of the command.
struct Outcome {
    changes: Vec<code_commit_engine::Changed>,
    put_back: Vec<String>,
    /// The codes of the warnings.
    warnings: BTreeSet<String>,
    /// What the warnings name of ignored files, and what is kept of it.
    set_aside: BTreeMap<PathBuf, String>,
    tree: All,
    /// The same after `undo`, and what that said.
    undone: All,
    refused: BTreeSet<String>,
    /// Ignored files, no products, that are neither in the tree nor kept.
    lost: BTreeSet<PathBuf>,
    /// New hooks and configurations for which git would run a program.
    dangers: BTreeSet<String>,
    /// Where the ways may differ.
    loose: BTreeSet<PathBuf>,
}

impl Case {
    fn shown(&self) -> String {
        let mut text = format!("{:?}\n", self.keeps);
        for (what, deeds) in [
            ("committed", &self.committed),
            ("uncommitted", &self.uncommitted),
            ("command", &self.command),
        ] {
            write!(text, "--- {what}\n{}", script(deeds)).unwrap();
        }
        text
    }

    fn project(&self, place: Where) -> Project {
        let mut project = Project::new(&[
            (".gitignore", RULES),
            ("a", "a\n"),
            ("d/a", "a\n"),
            ("build.sh", "true\n"),
        ]);
        let mut account = match &self.keeps {
            Keeps::Build | Keeps::Nothing => {
                engine("the build", Policy::build(Binds::Commit), Vec::new())
            }
            Keeps::Files(files) => {
                let files = files.iter().map(String::as_str);
                engine("a command", Policy::scoped(files), Vec::new())
            }
        };
        account.scope.products = vec!["made".into()];
        account.scope.keeps_nothing = matches!(self.keeps, Keeps::Nothing);
        project.account = account;
        let commit =
            "git add -A; git -c user.name=A -c user.email=a@example.invalid commit -qm 1 >&2";
        let made = format!(
            "umask 022\n{}{commit}\n{}",
            script(&self.committed),
            script(&self.uncommitted)
        );
        let [program, args @ ..] = shell(&made);
        std::process::Command::new(program)
            .args(args)
            .current_dir(project.root())
            .status()
            .unwrap();
        project.works(place)
    }

    /// Runs the command as the product does, in the tree or in a view of it.
    fn outcome(&self, place: Where) -> Outcome {
        let mut project = self.project(place);
        let (root, run, undo) = (project.root(), project.run.clone(), project.undo_folder());
        let guard = Guard::open(&root, Policy::commit()).unwrap();
        let before = project.all();
        project.account.open(&guard, &run).unwrap();
        let env = Env::allowed(env::vars_os(), &[]);
        let access = Access {
            view: project
                .account
                .overlay()
                .unwrap()
                .map(|Folders { upper, work }| View { upper, work }),
            ..Access::new(&root, &env)
        };
        let confinement = Confinement {
            backend: code_commit_runner::Backend::Namespaces,
            access,
        };
        let script = format!("umask 022\n{}:\n", script(&self.command));
        let command = Command {
            deadline: Some(Duration::from_mins(1)),
            ..Command::new(shell(&script), &root, env)
        };
        let ran = code_commit_runner::run(
            &command,
            &confinement,
            &Cancel::new().unwrap(),
            &mut |_, _| {},
        )
        .unwrap();
        assert_eq!(
            ran.ended,
            code_commit_runner::Ended::Exited(0),
            "{}",
            self.shown()
        );
        let done = project.all();
        let accounted = project.account.close(&guard, &run, &undo).unwrap();
        let tree = project.all();
        let undoes = || {
            code_commit_apply::undo(
                &project.lock(),
                &root,
                std::slice::from_ref(&undo),
                code_commit_apply::Force::No,
            )
        };
        let undone = undo.exists().then(undoes).transpose();
        let kept = attic(&run);
        Outcome {
            put_back: put_back(&accounted),
            warnings: warnings(&accounted),
            set_aside: set_aside(&accounted, &kept),
            lost: lost(&guard, &before, &tree, &kept, &accounted),
            dangers: dangers(&before, &tree),
            loose: loose(&guard, &before, &done),
            changes: accounted.changes,
            tree,
            undone: project.all(),
            refused: undone.err().iter().map(ToString::to_string).collect(),
        }
    }

    fn differences(&self) -> Option<String> {
        let (view, tree) = (self.outcome(Where::View), self.outcome(Where::Tree));
        let mut text = String::new();
        let mut compare = |what: &str, view: BTreeSet<String>, tree: BTreeSet<String>| {
            for (way, one) in (view.difference(&tree).map(|one| ("view", one)))
                .chain(tree.difference(&view).map(|one| ("tree", one)))
            {
                writeln!(text, "{what}, in the {way} only: {one}").unwrap();
            }
        };
        let is_loose = |path: &Path| tree.loose.contains(path) || is_inside_git(path);
        let put_back = |one: &Outcome| {
            let all = one.put_back.iter();
            all.filter(|path| !is_loose(Path::new(path)))
                .cloned()
                .collect()
        };
        let all = |all: &All| {
            let mut counting = all.clone();
            counting.retain(|path, _| !is_loose(path));
            // A file that was only touched gets its owner anew, which costs it the bit.
            let is_set_id = |mode: u32| mode & 0o170_000 == 0o100_000 && mode & 0o6000 != 0;
            let line = |(path, (mode, content)): (&PathBuf, &(u32, Vec<u8>))| {
                let mode = if is_set_id(*mode) {
                    mode & !0o6000
                } else {
                    *mode
                };
                format!("{path:?} {mode:o} {:?}", String::from_utf8_lossy(content))
            };
            let full = counting
                .iter()
                .filter(|(path, _)| !is_empty_in(&counting, path));
            full.map(line).collect()
        };
        let changes = |one: &Outcome| {
            let counting = one.changes.iter();
            let counting = counting.filter(|one| !is_loose(Path::new(&one.path)));
            counting.map(|one| format!("{one:?}")).collect()
        };
        let set_aside = |one: &Outcome| {
            let counting = one.set_aside.iter().filter(|(path, _)| !is_loose(path));
            counting.map(|one| format!("{one:?}")).collect()
        };
        let lost = |one: &Outcome| one.lost.iter().map(|path| format!("{path:?}")).collect();
        compare("changes", changes(&view), changes(&tree));
        compare("put back", put_back(&view), put_back(&tree));
        compare("set aside", set_aside(&view), set_aside(&tree));
        compare("is there", all(&view.tree), all(&tree.tree));
        // A symlink in the place of the folder of products stays in the tree, where undo finds it.
        let is_in_the_way = |said: &String| said.starts_with("made ");
        if !tree.refused.iter().any(is_in_the_way) {
            compare("after undo", all(&view.undone), all(&tree.undone));
            compare("undo says", view.refused.clone(), tree.refused.clone());
        }
        compare("lost", lost(&view), BTreeSet::new());
        compare("lost", BTreeSet::new(), lost(&tree));
        compare("git would run", view.dangers, BTreeSet::new());
        compare("git would run", BTreeSet::new(), tree.dangers);
        if view.loose.is_empty() && tree.loose.is_empty() {
            compare("warning", view.warnings, tree.warnings);
        }
        (!text.is_empty()).then_some(text)
    }
}

/// Nobody accounts for what is in a repository, except for what makes git run programs.
fn is_inside_git(path: &Path) -> bool {
    let mut names = path.iter().skip_while(|name| *name != ".git");
    let inner = names.by_ref().nth(1);
    inner.is_some_and(|name| !crate::snapshot::RUN_BY_GIT.iter().any(|run| name == *run))
}

/// Whether the rules ignore a path, or a folder above it.
fn is_ignored(guard: &Guard, path: &Path, is_folder: bool) -> bool {
    let mut above = path
        .ancestors()
        .skip(1)
        .filter(|above| *above != Path::new(""));
    guard.has_ignored(path, is_folder)
        || path.starts_with("made")
        || above.any(|above| guard.has_ignored(above, true))
}

fn is_folder_in(all: &All, path: &Path) -> bool {
    path == Path::new("")
        || all
            .get(path)
            .is_some_and(|(mode, _)| Seen::is_folder(*mode))
}

/// Whether a path is a folder without any file: git does not track one, so it may be left where its files are gone.
fn is_empty_in(all: &All, path: &Path) -> bool {
    let mut inner = all.iter().filter(|(inner, _)| inner.starts_with(path));
    is_folder_in(all, path) && inner.all(|(_, (mode, _))| Seen::is_folder(*mode))
}

/// What git ignores in a folder that the command removed, made or replaced, or marked as a cache: nobody accounts for what
/// else was in a folder that comes back, so a view still has it, and the tree does not. And what a symlink in the place of
/// the folder of products leads to: the tree follows it, and a view does not.
fn loose(guard: &Guard, before: &All, done: &All) -> BTreeSet<PathBuf> {
    let is_moved = |path: &Path| is_folder_in(before, path) != is_folder_in(done, path);
    let is_marked = |path: &Path| {
        let tag = path.join("CACHEDIR.TAG");
        before.contains_key(&tag) != done.contains_key(&tag)
    };
    // Of a repository for which git would run a program, a view keeps out all, and the tree loses what names the program.
    let is_part = |path: &Path| {
        let mut parts = ["HEAD", "objects", "refs", "config"].iter();
        let has = |part: &&str| done.contains_key(&path.with_file_name(*part));
        parts.clone().any(|part| path.ends_with(part)) && parts.all(has)
    };
    let is_link = |all: &All| {
        let made = all.get(Path::new("made"));
        made.is_some_and(|(mode, _)| mode & 0o170_000 == 0o120_000)
    };
    let follows = is_link(before) || is_link(done);
    let is_loose = |path: &&PathBuf| {
        let is_folder = is_folder_in(before, path) || is_folder_in(done, path);
        let mut folders = path.ancestors();
        (follows && path.starts_with("made"))
            || (is_ignored(guard, path, is_folder)
                && (is_part(path) || folders.any(|folder| is_moved(folder) || is_marked(folder))))
    };
    let all = before.keys().chain(done.keys());
    all.filter(is_loose).cloned().collect()
}

/// What git would run of what was not there before.
fn dangers(before: &All, tree: &All) -> BTreeSet<String> {
    let is_repository = |folder: &Path| {
        let mut parts = ["HEAD", "objects", "refs"].iter();
        parts.all(|part| tree.contains_key(&folder.join(part)))
    };
    let runs = |path: &Path, text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        path.ends_with("hooks/post-checkout")
            || (path.ends_with("config")
                && (text.contains("fsmonitor") || text.contains("include")))
    };
    let is_danger = |(path, (mode, text)): &(&PathBuf, &(u32, Vec<u8>))| {
        let is_new = before.get(*path).is_none_or(|(_, old)| old != text);
        let mut folders = path.ancestors().skip(1).take(2);
        !Seen::is_folder(*mode) && is_new && runs(path, text) && folders.any(is_repository)
    };
    let all = tree.iter().filter(is_danger);
    all.map(|(path, _)| format!("{path:?}")).collect()
}

/// Ignored files, no products, that are neither in the tree nor kept.
fn lost(
    guard: &Guard,
    before: &All,
    tree: &All,
    kept: &BTreeMap<PathBuf, String>,
    accounted: &Accounted,
) -> BTreeSet<PathBuf> {
    let is_product = |path: &Path| {
        let mut above = path.ancestors().skip(1);
        path.starts_with("made")
            || above.any(|above| {
                above != Path::new("")
                    && (guard.has_ignored(above, true)
                        || before.contains_key(&above.join("CACHEDIR.TAG")))
            })
    };
    let is_kept = |path: &Path, text: &str| {
        let mut all = kept.iter();
        all.any(|(place, kept)| place.ends_with(path) && kept.ends_with(text))
    };
    let is_lost = |(path, (mode, content)): &(&PathBuf, &(u32, Vec<u8>))| {
        let has_change = |one: &code_commit_engine::Changed| Path::new(&one.path) == **path;
        let has_content = matches!(mode & 0o170_000, 0o100_000 | 0o120_000);
        has_content
            && guard.has_ignored(path, false)
            && !is_product(path)
            && tree.get(*path).is_none_or(|(_, now)| now != content)
            && !is_kept(path, &String::from_utf8_lossy(content))
            && !accounted.changes.iter().any(has_change)
    };
    let lost = before.iter().filter(is_lost);
    lost.map(|(path, _)| path.clone()).collect()
}

/// The codes of the warnings. A view that is thrown away is not mentioned, while a tree has to be restored.
fn warnings(accounted: &Accounted) -> BTreeSet<String> {
    let codes = accounted
        .warnings
        .iter()
        .map(|warning| warning.code.clone());
    let is_said = |code: &String| code != "put-back" || !put_back(accounted).is_empty();
    codes.filter(is_said).collect()
}

/// What a command puts into a repository that is there already never leaves its view, and nobody is told.
fn put_back(accounted: &Accounted) -> Vec<String> {
    let is_told = |path: &&String| !path.split('/').any(|name| name == ".git");
    accounted.put_back.iter().filter(is_told).cloned().collect()
}

/// What the warnings name of ignored files.
fn set_aside(accounted: &Accounted, kept: &BTreeMap<PathBuf, String>) -> BTreeMap<PathBuf, String> {
    let lists = accounted.warnings.iter().filter_map(|warning| {
        let (_, list) = warning.message.split_once("replaced or removed ")?;
        Some(list.split_once(", which git ignores;")?.0)
    });
    let named: BTreeSet<&str> = lists.flat_map(|list| list.split(", ")).collect();
    let is_named = |path: &Path| named.contains(&*path.to_string_lossy());
    let kept = kept.iter().filter(|(path, _)| is_named(path));
    kept.map(|(path, text)| (path.clone(), text.clone()))
        .collect()
}

fn chosen(name: &str, usual: u64) -> u64 {
    env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(usual)
}

/// Whether a command can work in a view here. The helper is an example of another crate, which cargo builds with all tests.
fn has_views() -> bool {
    let example = || {
        let tests = env::current_exe().ok()?;
        Some(tests.ancestors().nth(2)?.join("examples/hold"))
    };
    let helper =
        env::var_os("CODE_COMMIT_TEST_HELPER").map_or_else(example, |path| Some(path.into()));
    let Some(helper) = helper.filter(|path| path.exists()) else {
        eprintln!(
            "SKIPPED: the two ways to take account, because `cargo build -p code-commit-runner --examples` was not run"
        );
        return false;
    };
    helper_is(helper);
    let probed = probe(Mode::Namespaces, None);
    if let Err(reason) = &probed {
        eprintln!(
            "SKIPPED: the two ways to take account, because there are no overlays here: {reason}"
        );
    }
    probed.is_ok()
}

#[test]
fn a_command_in_a_view_and_one_in_the_tree_leave_the_same() {
    if !has_views() {
        return;
    }
    let (cases, first) = (chosen("PRODUCER_CASES", CASES), chosen("PRODUCER_SEED", 1));
    let mut failed = Vec::new();
    for seed in first..first + cases {
        let bytes: Vec<u8> = seed.to_le_bytes().into_iter().cycle().take(32).collect();
        let config = ProptestConfig {
            cases: 1,
            failure_persistence: None,
            max_shrink_iters: 120,
            ..ProptestConfig::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let found = TestRunner::new_with_rng(config, rng).run(&case(), |case| {
            case.differences()
                .map_or(Ok(()), |text| Err(TestCaseError::fail(text)))
        });
        match found {
            Ok(()) => {}
            Err(TestError::Fail(_, case)) => {
                let text = case.differences().unwrap_or_default();
                let failure = format!(
                    "PRODUCER_SEED={seed} {}--- differences\n{text}",
                    case.shown()
                );
                eprintln!("DIFFERS: {failure}=====");
                failed.push(failure);
            }
            Err(TestError::Abort(reason)) => panic!("PRODUCER_SEED={seed}: {reason}"),
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {cases} cases differ, the first of them:\n{}",
        failed.len(),
        failed[0]
    );
}
