//! The five seeds, exactly. Models and agents that learn nothing drive each loop to its end; what the loop does is counted
//! and compared with the number that the seed names, every prompt with the seed's template, every log with the seed's name.
//!
//! Written from the seeds' text. Where a test lets a departure pass, it names it; the design lists all of them.
//! `cargo test -p code-commit-cli --test end_to_end seeds:: -- --nocapture --test-threads 1` shows the table.

mod s0;
mod s1;
mod s2;
mod s3;
mod s4;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};
use regex::Regex;
use similar::TextDiff;

use crate::scenes::commit;
use crate::scenes::files;
use crate::scenes::program::{Ran, tool};

const PROSE: &str = "I would change the file, but first I have a question.\n";
const NOTHING: &str = "";
/// Stands for a reply that consists of a thought and no text.
const THOUGHT_ONLY: &str = "(a thought)";
const TRAVERSAL: &str = "^^^../outside.txt\nmine\n^^^end\n";
const NO_CHANGE: &str = "$$$start\nAll is well.\n$$$end\n";

/// A service that gives these replies, the last of them for ever.
fn service(replies: &[&str]) -> Server {
    let step = |reply: &&str| match *reply {
        THOUGHT_ONLY => Step {
            thought: Some("Hm.".to_owned()),
            ..Step::text("")
        },
        text => Step::text(text),
    };
    let mut steps: Vec<Step> = replies.iter().map(step).collect();
    steps.last_mut().unwrap().times = Some(50);
    Server::start(Script::new(steps)).unwrap()
}

/// The rows of one seed: printed as they are counted, judged together.
struct Table {
    seed: &'static str,
    row: String,
    faults: String,
}

impl Table {
    fn of(seed: &'static str) -> Self {
        Self {
            seed,
            row: String::new(),
            faults: String::new(),
        }
    }

    /// What is counted, how often the seed has it, and how often it was.
    fn row(
        &mut self,
        row: &str,
        ran: &Ran,
        exit: usize,
        what: &str,
        seed: &[usize],
        counted: &[usize],
    ) {
        row.clone_into(&mut self.row);
        let mut line = format!("{}  {row:<44}", self.seed);
        let mut count = |what: &str, seed: &str, counted: &str| {
            let sign = if seed == counted { '=' } else { '≠' };
            let _ = write!(line, "  {what} {seed} {sign} {counted}");
        };
        for ((what, seed), counted) in what.split(' ').zip(seed).zip(counted) {
            count(what, &seed.to_string(), &counted.to_string());
        }
        let code = ran
            .code
            .map_or("signal".to_owned(), |code| code.to_string());
        count("exit", &exit.to_string(), &code);
        eprintln!("{line}");
        if line.contains('≠') {
            self.faults += &format!("{line}\n{ran}\n");
        }
    }

    /// A text of the row at hand, whole.
    fn same(&mut self, what: &str, seed: &str, found: &str) {
        if seed != found {
            let diff = TextDiff::from_lines(seed, found)
                .unified_diff()
                .header("seed", "found")
                .to_string();
            self.faults += &format!("{} {}: {what}\n{diff}\n", self.seed, self.row);
        }
    }

    fn holds(&mut self, what: &str, holds: bool) {
        if !holds {
            self.faults += &format!("{} {}: {what}\n", self.seed, self.row);
        }
    }

    #[track_caller]
    fn finish(self) {
        assert!(self.faults.is_empty(), "{}", self.faults);
    }
}

/// Judges the rows of one seed.
#[track_caller]
fn judge<R>(seed: &'static str, rows: &[R], check: impl Fn(&mut Table, &R)) {
    let mut table = Table::of(seed);
    rows.iter().for_each(|row| check(&mut table, row));
    table.finish();
}

/// Without any of these files a run makes no call.
#[track_caller]
fn needs(
    seed: &'static str,
    files: &[&str],
    scene: impl Fn() -> commit::Scene,
    run: impl Fn(&commit::Scene) -> Ran,
) {
    judge(seed, files, |table, missing| {
        let scene = scene();
        fs::remove_file(scene.at(missing)).unwrap();
        let (ran, row) = (run(&scene), format!("without {missing}"));
        table.row(&row, &ran, 3, "calls", &[0], &[scene.calls()]);
    });
}

/// The text of a file; empty where there is none.
fn text(path: &Path) -> String {
    fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// How many lines a file beside the tree has: what runs appends one each time.
fn runs_of(name: &str, beside: &Path) -> usize {
    text(&beside.join(name)).lines().count()
}

/// What every file and folder of a tree is, but for those of git and of the record: path, inode, time of its last change,
/// size, content.
const TREE: &str = "own='-path ./.git -o -path ./logs -o -path ./agent-config -o -path ./llm-user-output.txt'; \
    find . -mindepth 1 \\( $own \\) -prune -o -printf '%p %i %T@ %s\\n' | sort; \
    find . \\( $own \\) -prune -o -type f -exec sha256sum {} + | sort";

/// Shell lines with which the last command of a green run leaves a picture of the tree beside it.
fn picture() -> String {
    format!("{{ {TREE}; }} > ../green\n")
}

/// Whether nothing has touched the tree since [`picture`].
fn untouched_since_green(table: &mut Table, project: &Project) {
    let now = Ran::of(&mut tool(
        "sh",
        project.root(),
        project.beside(),
        &["-c", TREE],
    ));
    let green = text(&project.beside().join("green"));
    table.same("the tree after the green build", &green, &now.out);
}

/// One row of the two loops that ask a model for files.
struct Row {
    name: &'static str,
    /// The last one for ever.
    replies: &'static [&'static str],
    build: &'static str,
    calls: usize,
    builds: usize,
    exit: usize,
}

fn row(
    name: &'static str,
    replies: &'static [&'static str],
    build: &'static str,
    [calls, builds, exit]: [usize; 3],
) -> Row {
    Row {
        name,
        replies,
        build,
        calls,
        builds,
        exit,
    }
}

/// The rows in which the two loops differ only in how often they ask for what never comes: so often.
fn alike(most: usize) -> Vec<Row> {
    let (red, refused, green) = ([most, most, 1], [most, 0, 1], [1, 1, 0]);
    let (lost, thought) = (LOSES_ITS_INTERPRETER, "a thought and no text for ever");
    vec![
        row("the same change for ever", &[HALF], BUILD, red),
        row("prose for ever", &[PROSE], BUILD, refused),
        row("nothing for ever", &[NOTHING], BUILD, refused),
        row(thought, &[THOUGHT_ONLY], BUILD, refused),
        row("a traversal for ever", &[TRAVERSAL], BUILD, refused),
        row("$$$ for ever, red", &[NO_CHANGE], BUILD, red),
        row("$$$, green", &[NO_CHANGE], ALWAYS_GREEN, green),
        row("right at once", &[WHOLE], BUILD, green),
        row(
            "right at once, and green before",
            &[WHOLE],
            ALWAYS_GREEN,
            green,
        ),
        row("a placeholder for ever", &[PLACEHOLDER], BUILD, red),
        row(
            "a tool is missing: red like any other",
            &[HALF],
            LACKS_A_TOOL,
            red,
        ),
        row("the build cannot be started", &[HALF], lost, [2, 1, 8]),
    ]
}

impl Row {
    /// The n-th reply as text.
    fn reply(&self, n: usize) -> &'static str {
        let reply = self.replies.get(n - 1).or(self.replies.last()).unwrap();
        if *reply == THOUGHT_ONLY { "" } else { reply }
    }
}

/// What a reply that is applied leaves is not what the build wants.
const HALF: &str = "Some prose.\n&&&start\nfor you\n&&&end\n%%%start\na thought\n%%%end\n^^^work.txt\nhalf\n^^^end\n";
const OTHER_HALF: &str = "^^^work.txt\nthe other half\n^^^end\n^^^new.txt\nnew\n^^^end\n";
const WITHOUT_NEW: &str = "^^^new.txt\n^^^delete\n";
/// A line that stands for others, as models write it.
const PLACEHOLDER: &str = "^^^work.txt\nhalf\n# ... rest of the file unchanged ...\n^^^end\n";
const WHOLE: &str = "^^^work.txt\nwhole\n^^^end\n";

/// Counts itself outside of the tree and prints to both streams.
const BUILD: &str = "#!/bin/sh\necho build >> ../builds\necho out\necho err >&2\ngrep -q whole work.txt || exit 3\n";
const RED: &str = "out\nerr\nexit code: 3\n";
const ALWAYS_GREEN: &str = "#!/bin/sh\necho build >> ../builds\n";
/// Exits with 127, which is red like any other failure.
const LACKS_A_TOOL: &str = "#!/bin/sh\necho build >> ../builds\nno-such-compiler || exit\n";
/// Its interpreter is gone when it is to be started for the second time.
const LOSES_ITS_INTERPRETER: &str =
    "#!{BESIDE}/interpreter\necho build >> ../builds\nrm ../interpreter\nexit 3\n";

const QUERY: &str = "Make it whole.\n";
const CODEBASE: &str = "--- FILE .gitignore ---\n/agent-config\n/logs\n/*-key.txt\n/products/\n/target\n--- FILE work.txt ---\nnothing\n";

/// A project with this build, a service that gives these replies, and besides these files.
fn scene(row: &Row, more: &[(&str, &str)]) -> commit::Scene {
    let project = Project::with(&[
        (
            ".gitignore",
            "/agent-config\n/logs\n/*-key.txt\n/products/\n/target\n",
        ),
        ("work.txt", "nothing\n"),
    ])
    .unwrap();
    let beside = project.beside().canonicalize().unwrap();
    let interpreter = beside.join("interpreter");
    fs::copy("/bin/sh", interpreter).unwrap();
    let build = row.build.replace("{BESIDE}", beside.to_str().unwrap()) + &picture();
    project.write("build.sh", build.as_bytes()).unwrap();
    for (path, content) in more {
        project.write(path, content.as_bytes()).unwrap();
    }
    project.commit("the scene").unwrap();
    commit::Scene {
        project,
        server: service(row.replies),
    }
}

/// The text of every prompt that arrived.
fn prompts(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let asked = requests
        .iter()
        .filter(|request| request.method == "POST" && !request.path.ends_with(":countTokens"));
    asked
        .map(|request| {
            let body = request.json();
            let text = body.pointer("/contents/0/parts/0/text").cloned();
            assert_eq!(body.get("systemInstruction"), None, "all of it is one text");
            text.unwrap_or_default()
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

/// The files of a run, with `N` for the number of a call: its prompt, the answer as it came, the answer's text, and what the
/// build printed. Where a reply is refused, the reasons are there: S0 says so, and S1 says nothing.
struct Logs {
    folder: PathBuf,
    kinds: [&'static str; 4],
}

impl Logs {
    fn text(&self, kind: usize, n: usize) -> String {
        text(
            &self
                .folder
                .join(self.kinds[kind].replace('N', &n.to_string())),
        )
    }
}

/// Prints the row, and judges what both loops have in common.
fn count(table: &mut Table, row: &Row, scene: &commit::Scene, ran: &Ran, logs: &Logs) {
    let beside = scene.project.beside();
    let counted = [prompts(&scene.server).len(), runs_of("builds", beside)];
    let seed = [row.calls, row.builds];
    table.row(row.name, ran, row.exit, "calls builds", &seed, &counted);
    let is_outside = beside.join("outside.txt").exists();
    table.holds("nothing is written outside", !is_outside);
    if row.exit == 0 {
        untouched_since_green(table, &scene.project);
    }
    let of_a_call = |n: usize| logs.kinds.map(|kind| kind.replace('N', &n.to_string()));
    named(table, &logs.folder, (1..=row.calls).flat_map(of_a_call));
    let reds = (1..=row.calls).filter(|n| logs.text(3, *n) == RED).count();
    let is_each = row.build != BUILD || reds == row.builds - usize::from(row.exit == 0);
    table.holds("each build's output is logged", is_each);
    for (n, sent) in (1..).zip(prompts(&scene.server)) {
        table.same(&format!("prompt {n} in the log"), &sent, &logs.text(0, n));
        table.same(
            &format!("reply {n} in the log"),
            row.reply(n),
            &logs.text(2, n),
        );
    }
}

/// Of a run's folder, its name and the names of the files that have a call's number.
fn named(table: &mut Table, folder: &Path, seed: impl Iterator<Item = String>) {
    let name = folder.file_name().unwrap_or_default().to_str().unwrap();
    let time = Regex::new(r"^20\d\d(-\d\d){5}($|-commit$|-phase1$)").unwrap();
    table.holds(&format!("{name} is named by the time"), time.is_match(name));
    let is_of_a_call = Regex::new(r"^query-\d|^\d+-").unwrap();
    let mut found = files::names(folder);
    found.retain(|name| is_of_a_call.is_match(name));
    let mut seed: Vec<String> = seed.collect();
    seed.sort();
    table.same("the names of the logs", &seed.join("\n"), &found.join("\n"));
}

/// A prompt without the lines that are ours, of which the design lists one for these rows.
fn without_ours(table: &mut Table, prompt: &str) -> String {
    let (ours, seeds): (Vec<&str>, Vec<&str>) = prompt
        .split_inclusive('\n')
        .partition(|line| line.starts_with("[code-commit]"));
    let is_listed = |line: &&str| line.starts_with("[code-commit] This is the same failure");
    table.holds(&format!("{ours:?} is listed"), ours.iter().all(is_listed));
    seeds.concat()
}
