//! The command line and the environment of each CLI.

use std::ffi::OsString;
use std::path::Path;

use code_commit_runner::{Backend, Confinement, Env};

use crate::{Home, Installed, Kind, Permissions, Session, Spawn, home};

/// Longer prompts are not passed on the command line: the kernel's limit for one argument is 128
/// KiB.
const LONGEST_ARGUMENT: usize = 96 << 10;

/// Codex reads its service's address, including `/v1`, from here.
const CODEX_ADDRESS: &str = "OPENAI_BASE_URL";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Argument,
    Input,
}

/// Claude Code and Gemini CLI treat an argument that begins with a dash as an option, whatever
/// precedes it.
pub(crate) fn way(prompt: &str) -> Way {
    let is_argument =
        prompt.len() <= LONGEST_ARGUMENT && !prompt.contains('\0') && !prompt.starts_with('-');
    if is_argument {
        Way::Argument
    } else {
        Way::Input
    }
}

/// The prompt as the CLI receives it: after the system prompt if the CLI has no option for that.
pub(crate) fn prompt(kind: Kind, spawn: &Spawn<'_>) -> String {
    match (kind, spawn.system_prompt) {
        (Kind::Gemini | Kind::Codex, Some(system)) => {
            format!("{}\n\n{}", system.trim_end(), spawn.prompt)
        }
        (Kind::Claude, Some(_)) | (_, None) => spawn.prompt.to_owned(),
    }
}

/// The command line for a turn without a person.
pub(crate) fn argv(cli: &Installed, spawn: &Spawn<'_>, prompt: &str) -> Vec<OsString> {
    let words = match cli.kind {
        Kind::Claude => claude(spawn, prompt),
        Kind::Gemini => gemini(spawn, prompt),
        Kind::Codex => codex(spawn, prompt),
    };
    begun(cli)
        .chain(words.into_iter().map(OsString::from))
        .collect()
}

/// The words that start the CLI.
fn begun(cli: &Installed) -> impl Iterator<Item = OsString> {
    cli.interpreter
        .iter()
        .cloned()
        .chain([cli.program.clone().into_os_string()])
}

/// A command line under construction.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    fn option(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.add(&[name, value]);
        }
        self
    }
}

/// Options that take several values would swallow the prompt, so it comes right after `-p`.
fn claude(spawn: &Spawn<'_>, prompt: &str) -> Vec<String> {
    let mut words = Words::default();
    words.add(&["-p"]);
    if way(prompt) == Way::Argument {
        words.add(&[prompt]);
    }
    words.add(&["--output-format", "stream-json", "--verbose"]);
    claude_setup(&mut words, spawn);
    words.0
}

fn claude_setup(words: &mut Words, spawn: &Spawn<'_>) {
    words
        .option("--model", spawn.model)
        .option("--append-system-prompt", spawn.system_prompt);
    match &spawn.session {
        Session::New(id) => words.add(&["--session-id", id]),
        Session::Resume(id) => words.add(&["--resume", id]),
        Session::None => words,
    };
    if spawn.permissions == Permissions::Skip {
        words.add(&["--dangerously-skip-permissions"]);
    }
}

fn gemini(spawn: &Spawn<'_>, prompt: &str) -> Vec<String> {
    let mut words = Words::default();
    gemini_setup(&mut words, spawn);
    words.add(&["--output-format", "stream-json"]);
    if way(prompt) == Way::Argument {
        words.add(&["-p", prompt]);
    }
    words.0
}

fn gemini_setup(words: &mut Words, spawn: &Spawn<'_>) {
    words.option("-m", spawn.model);
    if spawn.permissions == Permissions::Skip {
        words.add(&["-y"]);
    }
    match &spawn.session {
        Session::New(id) => words.add(&["--session-id", id]),
        Session::Resume(id) => words.add(&["--resume", id]),
        Session::None => words,
    };
}

fn codex(spawn: &Spawn<'_>, prompt: &str) -> Vec<String> {
    let mut words = Words::default();
    words.add(&["exec"]);
    if let Session::Resume(_) = &spawn.session {
        words.add(&["resume"]);
    }
    words.add(&[
        "--json",
        "--skip-git-repo-check",
        "-c",
        "analytics.enabled=false",
    ]);
    codex_setup(&mut words, spawn);
    if let Session::Resume(id) = &spawn.session {
        words.add(&[id]);
    }
    // `--` ends the options, because a prompt may begin with a dash.
    words.add(&[
        "--",
        if way(prompt) == Way::Argument {
            prompt
        } else {
            "-"
        },
    ]);
    words.0
}

fn codex_setup(words: &mut Words, spawn: &Spawn<'_>) {
    words.option("-m", spawn.model);
    for setting in codex_service(spawn) {
        words.add(&["-c", &setting]);
    }
    if spawn.permissions == Permissions::Skip {
        words.add(&["--dangerously-bypass-approvals-and-sandbox"]);
    }
}

/// Codex ignores `OPENAI_BASE_URL`: another address needs its own provider, which also says how
/// often to retry.
fn codex_service(spawn: &Spawn<'_>) -> Vec<String> {
    let Some((_, address)) = spawn
        .extra_env
        .iter()
        .find(|(name, _)| name == CODEX_ADDRESS)
    else {
        return Vec::new();
    };
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let own = [
        ("name", quoted("own")),
        ("base_url", quoted(&address.to_string_lossy())),
        ("env_key", quoted(Kind::Codex.key_variable())),
        ("wire_api", quoted("responses")),
        ("request_max_retries", spawn.retries.to_string()),
        ("stream_max_retries", spawn.retries.to_string()),
    ];
    let own = own.map(|(name, value)| format!("model_providers.own.{name}={value}"));
    ["model_provider=\"own\"".to_owned()]
        .into_iter()
        .chain(own)
        .collect()
}

/// The command line for a session with a person.
pub(crate) fn interactive_argv(cli: &Installed, spawn: &Spawn<'_>) -> Vec<OsString> {
    let mut words = Words::default();
    match cli.kind {
        Kind::Claude => claude_setup(&mut words, spawn),
        Kind::Gemini => gemini_setup(&mut words, spawn),
        Kind::Codex => codex_setup(&mut words, spawn),
    }
    let prompt = prompt(cli.kind, spawn);
    match cli.kind {
        _ if prompt.is_empty() => {}
        Kind::Claude | Kind::Codex => drop(words.add(&["--", &prompt])),
        Kind::Gemini => drop(words.add(&["--prompt-interactive", &prompt])),
    }
    begun(cli)
        .chain(words.0.into_iter().map(OsString::from))
        .collect()
}

/// The CLI's whole environment.
pub(crate) fn env(cli: &Installed, spawn: &Spawn<'_>, tmp: Option<&Path>) -> Env {
    let mut env = spawn.env.clone();
    if env.get("TERM").is_none() {
        env.set("TERM", "xterm-256color");
    }
    if let Some(tmp) = tmp {
        env.set("TMPDIR", tmp);
    }
    if let Home::Own(folder) = spawn.home {
        env.set("HOME", folder);
        let (name, value) = home::variable(cli.kind, folder);
        env.set(name, value);
    }
    match cli.kind {
        Kind::Claude => claude_env(&mut env, spawn),
        Kind::Gemini => {
            // A relaunched second process would survive a kill of the first.
            env.set("GEMINI_CLI_NO_RELAUNCH", "true");
            env.set("GEMINI_CLI_TRUST_WORKSPACE", "true");
        }
        Kind::Codex => {}
    }
    if let Some(key) = &spawn.key {
        env.set(key.name(), key.expose());
    }
    for (name, value) in &spawn.extra_env {
        env.set(name, value);
    }
    env
}

fn claude_env(env: &mut Env, spawn: &Spawn<'_>) {
    env.set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    env.set("DISABLE_AUTOUPDATER", "1");
    env.set("CLAUDE_CODE_MAX_RETRIES", spawn.retries.to_string());
    if spawn.permissions == Permissions::Skip && spawn.confinement.backend != Backend::Off {
        // Root may skip permissions only if something else restricts it.
        env.set("IS_SANDBOX", "1");
    }
}

/// The sandbox with everything that the CLI itself needs.
pub(crate) fn confinement(cli: &Installed, spawn: &Spawn<'_>) -> Confinement {
    let mut confinement = spawn.confinement.clone();
    let access = &mut confinement.access;
    access
        .readable
        .extend([&cli.installation].into_iter().chain(&cli.beside).cloned());
    match spawn.home {
        Home::Own(folder) => access.writable.push(folder.to_owned()),
        Home::User => {
            if let Some(home) = spawn.env.get("HOME") {
                home::open(cli.kind, Path::new(home), access);
            }
        }
    }
    confinement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_is_made_of_a_prompt() {
        let check = |prompt: &str| {
            let (cwd, access) = (Path::new("/"), Confinement::off());
            let spawn = Spawn::new(cwd, prompt, cwd, &access);
            let words = [
                claude(&spawn, prompt),
                gemini(&spawn, prompt),
                codex(&spawn, prompt),
            ]
            .concat();
            (
                way(prompt),
                words.iter().filter(|word| *word == prompt).count(),
            )
        };
        assert_eq!(check("go - on"), (Way::Argument, 3));
        for prompt in ["---\nrole: builder", "- first this", "--help me", "go\0on"] {
            assert_eq!(check(prompt), (Way::Input, 0), "{prompt:?}");
        }
    }
}
