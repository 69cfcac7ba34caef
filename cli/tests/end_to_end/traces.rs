//! What a run leaves behind: no key in any spelling, and no more bytes than it must.

use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use code_commit_fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT};
use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::Ran;

/// Opens nothing. JSON has to escape it.
const KEY: &str = "AIzaTraces\"of/a+key\\of-no-use-91";

/// Prints the key as it is, in JSON and in base64: the files lie beside the project, where no roll-up goes.
const TELLTALE_BUILD: &str = "#!/bin/sh\ncat ../key.*\ncat ../key.* >&2\nsh tests/greet_test.sh\n";

/// A run that is over.
struct Over {
    project: Project,
    requests: usize,
    ran: Ran,
}

impl Over {
    fn with(project: Project, script: Script, more: &[&str]) -> Self {
        let server = Server::start(script).unwrap();
        let scene = Scene { project, server };
        let environment = [("GEMINI_API_KEY", KEY)];
        let run = |args: &[&str]| Ran::of(&mut scene.command(args, &environment));
        run(&["rollup"]).exits(0);
        let ran = run(&[&scene.flags()[..], &["--verbose"], more].concat());
        Self {
            requests: scene.calls(),
            project: scene.project,
            ran,
        }
    }

    /// Where a key is found: files of the whole project folder, git's among them, and the two streams.
    fn traces(&self, but_for: &str) -> Vec<String> {
        let mut files = files::below(self.project.root());
        files.retain(|path| !path.ends_with(but_for));
        let mut places: Vec<(String, Vec<u8>)> = files
            .into_iter()
            .map(|path| (path.display().to_string(), fs::read(path).unwrap()))
            .collect();
        places.push((
            "standard output".to_owned(),
            self.ran.out.clone().into_bytes(),
        ));
        places.push((
            "standard error".to_owned(),
            self.ran.err.clone().into_bytes(),
        ));
        let spellings = spellings();
        let holds = |bytes: &[u8]| spellings.iter().any(|key| contains(bytes, key.as_bytes()));
        places
            .into_iter()
            .filter(|(_, bytes)| holds(bytes))
            .map(|(place, _)| place)
            .collect()
    }

    fn run_folder(&self) -> PathBuf {
        files::entries(self.project.root().join("agent-config/logs")).remove(0)
    }
}

/// The key as it is, in a JSON string, and what base64 makes of it behind 0, 1 or 2 other bytes.
fn spellings() -> Vec<String> {
    let json = |text: &str| {
        serde_json::Value::from(text)
            .to_string()
            .trim_matches('"')
            .to_owned()
    };
    let mut all = vec![KEY.to_owned(), json(KEY), json(&json(KEY))];
    for before in ["", "x", "xy"] {
        let encoded = STANDARD.encode(format!("{before}{KEY}"));
        all.push(encoded[4..encoded.len() - 4].to_owned());
    }
    all
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// The demo's project, with a build that prints the key.
fn telltale() -> Project {
    let project = Project::with(&FILES).unwrap();
    project
        .write("build.sh", TELLTALE_BUILD.as_bytes())
        .unwrap();
    project.commit("a build that tells").unwrap();
    let beside = project.beside();
    fs::write(beside.join("key.plain"), format!("the key: {KEY}\n")).unwrap();
    fs::write(
        beside.join("key.json"),
        format!("{}\n", serde_json::json!({ "key": KEY })),
    )
    .unwrap();
    fs::write(
        beside.join("key.base64"),
        format!("{}\n", STANDARD.encode(KEY)),
    )
    .unwrap();
    project
}

fn replies_with_the_key() -> Script {
    let spelled = format!(
        "{KEY}\n{}\n{}\n",
        serde_json::json!(KEY),
        STANDARD.encode(KEY)
    );
    let in_a_file = format!("^^^stolen.txt\n{spelled}^^^end\n");
    let said = format!("^^^a.txt\na\n^^^end\n&&&start\n{spelled}&&&end\n");
    Script::new(
        [
            in_a_file.as_str(),
            said.as_str(),
            BREAKS_THE_BUILD,
            MENDS_IT,
        ]
        .map(Step::text),
    )
}

#[test]
fn a_key_in_replies_and_build_output_leaves_no_trace() {
    for more in [&[][..], &["--json"], &["--stream=false"]] {
        let over = Over::with(telltale(), replies_with_the_key(), more);
        assert_eq!((over.ran.code, over.requests), (Some(0), 4), "{}", over.ran);
        assert!(
            !over.project.root().join("stolen.txt").exists(),
            "a reply with a key was applied"
        );
        assert_eq!(over.traces("-"), [""; 0], "{more:?}");
        let build = fs::read_to_string(over.run_folder().join("4-build.txt")).unwrap();
        assert!(
            build.contains("the key: [key …91]"),
            "the build did not print what it should: {build}"
        );
    }
}

#[test]
fn a_key_in_an_error_of_the_service_leaves_no_trace() {
    let message = format!("API key not valid: {KEY} {}", STANDARD.encode(KEY));
    for step in [
        Step::status(400).message(&message),
        Step {
            bad_key: true,
            ..Step::status(400).message(&message)
        },
        Step {
            content_type: Some("text/plain".to_owned()),
            status: Some(403),
            ..Step::body(&message)
        },
        Step {
            headers: [("x-echo".to_owned(), KEY.to_owned())].into(),
            ..Step::status(401).message(&message)
        },
    ] {
        for more in [&[][..], &["--json"]] {
            let over = Over::with(telltale(), Script::new([step.clone()]), more);
            assert_eq!((over.ran.code, over.requests), (Some(4), 1));
            assert_eq!(over.traces("-"), [""; 0], "{more:?}: {step:?}");
        }
    }
}

#[test]
fn a_prompt_with_a_key_in_any_spelling_is_refused_and_leaves_no_trace() {
    for spelled in [
        KEY.to_owned(),
        serde_json::json!(KEY).to_string(),
        STANDARD.encode(KEY),
    ] {
        let project = telltale();
        project
            .write(
                "agent-config/query.txt",
                format!("use {spelled}").as_bytes(),
            )
            .unwrap();
        let over = Over::with(project, Script::new([Step::text(MENDS_IT)]), &[]);
        assert_eq!((over.ran.code, over.requests), (Some(3), 0), "{spelled}");
        assert_eq!(over.traces("agent-config/query.txt"), [""; 0]);
    }
}

#[test]
fn the_search_for_traces_finds_each_spelling() {
    for spelled in spellings() {
        let project = Project::with(&FILES).unwrap();
        project
            .write(
                "deep/er/file",
                format!("before {spelled} behind").as_bytes(),
            )
            .unwrap();
        let ran = Ran {
            code: None,
            out: String::new(),
            err: String::new(),
        };
        let over = Over {
            project,
            requests: 0,
            ran,
        };
        assert_eq!(over.traces("-").len(), 1, "{spelled}");
    }
}

#[test]
fn a_run_folder_holds_the_prompt_the_build_output_and_the_reply_twice_and_little_more() {
    let line = "0123456789 abcdefghijklmnopqrstuvwxyz ".repeat(50);
    let content = format!("{line}\n").repeat(5_000_000 / line.len());
    let reply = format!("^^^big.txt\n{content}^^^end\n");
    for more in [&[][..], &["--stream=false"]] {
        let project = Project::with(&FILES).unwrap();
        project
            .write("build.sh", b"#!/bin/sh\nseq 1 20000\n")
            .unwrap();
        let over = Over::with(project, Script::new([Step::text(&reply)]), more);
        assert_eq!(over.ran.code, Some(0), "{}", over.ran);
        let size = |path: PathBuf| usize::try_from(fs::metadata(path).unwrap().len()).unwrap();
        let folder = over.run_folder();
        let [prompt, output] = ["1-query.txt", "1-build.txt"].map(|file| size(folder.join(file)));
        let whole: usize = files::below(&folder).into_iter().map(size).sum();
        let most = prompt + 2 * reply.len() + output + 64_000;
        assert!(
            whole <= most,
            "{whole} bytes, {} more than {most}",
            whole - most
        );
    }
}
