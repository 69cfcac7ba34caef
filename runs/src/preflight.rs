//! What must exist before anything is changed (S1 §The Initial Query, §Safety).

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_llm::{ModelId, Provider};
use code_commit_names::ours::{AGENT_CONFIG, BUILD};
use code_commit_repo::WorkTree;
use code_commit_report::printable;
use code_commit_settings::{CommandLine, Environment, Keys, Settings, keys};

use crate::exit::Failure;
use crate::model::spending;

/// The supervisor's description of what to change.
pub const QUERY: &str = "agent-config/query.txt";
/// The file that `rollup` writes.
pub const CODE_ROLLUP: &str = "agent-config/codeRollup.txt";

/// How to say what to change.
pub fn query_hint(file: &str) -> String {
    format!("describe the change with -m \"…\", or in {file}")
}

/// A missing item, with a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is wrong, naming the file.
    pub what: String,
    /// The hint.
    pub hint: String,
}

impl Missing {
    /// From both sentences.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: hint.into(),
        }
    }
}

impl From<Missing> for Failure {
    fn from(missing: Missing) -> Self {
        Self::refused(anyhow!(missing.what), missing.hint)
    }
}

/// The project is in a folder above, up to the top of the work tree: then nothing should be created here.
pub fn project_above(tree: &WorkTree) -> Option<Missing> {
    if tree.root().join(AGENT_CONFIG).exists() {
        return None;
    }
    let mut above = tree
        .root()
        .ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(tree.top()));
    let project = printable(
        &above
            .find(|folder| folder.join(AGENT_CONFIG).is_dir())?
            .to_string_lossy(),
    );
    Some(Missing::new(
        format!("this folder has no {AGENT_CONFIG}; {project} has"),
        format!("cd {project}; for a project of its own here: code-commit init"),
    ))
}

/// Checks that git tracks nothing in `agent-config`: tracked files are never ignored, whatever `.gitignore`
/// says.
pub fn agent_config_is_untracked(tracked: &[String]) -> Result<(), Missing> {
    let inside: Vec<&String> = tracked
        .iter()
        .filter(|path| Path::new(path).starts_with(AGENT_CONFIG))
        .collect();
    let Some(first) = inside.first() else {
        return Ok(());
    };
    let more = inside.len() - 1;
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more there")
    };
    Err(Missing::new(
        format!(
            "git tracks {}{more}, whatever .gitignore says, so a key could be committed",
            printable(first)
        ),
        format!(
            "git rm -r --cached {AGENT_CONFIG}, and commit that; revoke any key that others have seen"
        ),
    ))
}

/// Checks that the settings folder is a real folder of this project. A repository may contain a symlink
/// instead: queries, keys and records would be written to its target, and files from there sent to a model.
pub fn own_or_absent(root: &Path) -> Result<(), Missing> {
    match fs::symlink_metadata(root.join(AGENT_CONFIG)) {
        Ok(found) if found.is_symlink() => Err(Missing::new(
            format!(
                "{AGENT_CONFIG} is a symlink, so queries, keys and records would be stored elsewhere"
            ),
            format!("put a folder in its place: rm {AGENT_CONFIG} && mkdir {AGENT_CONFIG}"),
        )),
        _ => Ok(()),
    }
}

/// A file that the supervisor writes: it must exist, be UTF-8 and not be blank.
pub fn input(root: &Path, path: &str, hint: &str) -> Result<String, Missing> {
    // A symlink in the repository could send any file that the user may read.
    if path.starts_with(AGENT_CONFIG) && root.join(path).is_symlink() {
        let hint = format!("put the text itself in its place: rm {path}, then {hint}");
        return Err(Missing::new(
            format!("{path} is a symlink, so its text could come from elsewhere"),
            hint,
        ));
    }
    let bytes = read_regular(&root.join(path)).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            return Missing::new(format!("there is no {path}"), hint);
        }
        let is_other = fs::metadata(root.join(path)).is_ok_and(|found| !found.is_file());
        let hint = if is_other {
            "put a text file in its place"
        } else {
            "check its permissions"
        };
        Missing::new(format!("cannot read {path}: {error}"), hint)
    })?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Missing::new(
            format!("{path} is not UTF-8 (at byte {at})"),
            "save it as UTF-8",
        )
    })?;
    if text.trim().is_empty() {
        let first = if path.ends_with("codeRollup.txt") {
            "git add the project's files, then "
        } else if path.ends_with("gemini-system-prompt.txt") {
            "remove it, then "
        } else {
            ""
        };
        return Err(Missing::new(
            format!("{path} is empty"),
            format!("{first}{hint}"),
        ));
    }
    Ok(text)
}

fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    code_commit_dir::read(path, u64::MAX, code_commit_dir::Links::Followed)?
        .ok_or_else(|| io::Error::other("it is not a regular file"))
}

/// Creates `agent-config` if missing. A repository may contain a symlink instead, which would move queries,
/// keys and records out of the project.
pub fn own_folder(root: &Path) -> anyhow::Result<()> {
    let folder = root.join(AGENT_CONFIG);
    own_or_absent(root).map_err(|missing| anyhow!(missing.what))?;
    match fs::symlink_metadata(&folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(anyhow!("{AGENT_CONFIG} is not a folder")),
        Err(_) => fs::create_dir(&folder).with_context(|| format!("cannot make {AGENT_CONFIG}")),
    }
}

/// Checks the key for the model's service. A server with a custom address may need none, and reports it if it
/// does.
pub fn key(settings: &Settings, keys: &Keys) -> Result<(), Missing> {
    settings
        .all_models()
        .into_iter()
        .try_for_each(|model| key_of(&model, settings, keys))
}

fn key_of(model: &ModelId, settings: &Settings, keys: &Keys) -> Result<(), Missing> {
    let Some(provider) = provider(model, settings)? else {
        return Ok(());
    };
    let may_need_none = provider.key_optional && settings.model.base_url.is_some();
    if may_need_none && keys.of(&provider).is_none() {
        return Ok(());
    }
    let or_else = if provider.key_optional {
        "; a server of your own is named with --base-url"
    } else {
        ""
    };
    key_for(model, &provider, or_else, keys)
}

/// The provider of a model; `None` for one that answers from a file.
pub fn provider(model: &ModelId, settings: &Settings) -> Result<Option<Provider>, Missing> {
    let found = settings.provider_of(model);
    if found.is_some() || model.is_file() {
        return Ok(found);
    }
    let known = settings.all_providers().into_iter();
    let known: Vec<String> = known.map(|provider| provider.name).collect();
    Err(Missing::new(
        format!(
            "{model}: there is no provider {}; there are {}",
            model.provider(),
            known.join(", ")
        ),
        format!(
            "write the model as PROVIDER/NAME; a provider of your own is [providers.{}] in your configuration",
            model.provider()
        ),
    ))
}

/// A cost limit needs a known price; whether it is known is clear before the first call.
pub fn price(settings: &Settings) -> Result<(), Missing> {
    let spending = spending(settings);
    settings.all_models().into_iter().try_for_each(|name| {
        spending.keeps_cost(&name).map_err(|error| {
            Missing::new(
                format!("{name}: {error}"),
                "put its price into [[price]] of your configuration, or drop the limit (--max-cost)",
            )
        })
    })
}

/// Checks that every model has a key, even where a custom server needs none.
pub(crate) fn key_anyway(settings: &Settings, keys: &Keys) -> Result<(), Missing> {
    settings.all_models().into_iter().try_for_each(|model| {
        provider(&model, settings)?.map_or(Ok(()), |provider| key_for(&model, &provider, "", keys))
    })
}

/// `or_else` is appended to the hint.
fn key_for(
    model: &ModelId,
    provider: &Provider,
    or_else: &str,
    keys: &Keys,
) -> Result<(), Missing> {
    if let Some(source) = keys.unsendable(provider) {
        let what = format!(
            "the key in {source} contains a blank, a line ending or an unprintable character"
        );
        return Err(Missing::new(what, "put only the key there"));
    }
    if provider.key_env.is_empty() || keys.of(provider).is_some() {
        return Ok(());
    }
    // An existing key file that holds no key: the user has tried to put it there.
    Err(match keys.without(provider) {
        Some(without) => Missing::new(
            format!("there is no key for {model}: {without}"),
            "put only the key there, as UTF-8 text in a file that you can read",
        ),
        None => Missing::new(
            format!("there is no key for {model}"),
            format!("{}{or_else}", keys::remedy(provider)),
        ),
    })
}

/// The build command must be an executable file, by path or by a name on PATH: a model could not fix that.
pub fn build_command(
    root: &Path,
    command: &CommandLine,
    environment: &Environment,
) -> Result<(), Missing> {
    let Some(program) = command.argv.first() else {
        return Ok(());
    };
    if !program.contains('/') {
        return named_program(program, environment);
    }
    let name = program.strip_prefix("./").unwrap_or(program);
    let Ok(found) = fs::metadata(root.join(name)) else {
        let first = format!("code-commit init writes a first {BUILD}");
        let hint =
            format!("write one that exits with 0 if and only if the project is correct: {first}");
        let hint = if name == BUILD {
            hint
        } else {
            "see build.command in code-commit config".to_owned()
        };
        let (what, hint) = if root.join(name).is_symlink() {
            let what = format!("{name} is a symlink to nothing");
            (what, "remove it, or make what it names".to_owned())
        } else {
            (format!("there is no {name}"), hint)
        };
        return Err(Missing::new(what, hint));
    };
    if !found.is_file() {
        return Err(Missing::new(
            format!("{name} is not a file"),
            format!("replace {name} with a script"),
        ));
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err(Missing::new(
            format!("{name} cannot be executed"),
            format!("chmod +x {name}"),
        ));
    }
    interpreter(root, name)
}

/// Uses the folders in which the build looks it up. Without a PATH the build uses defaults, which are not
/// known here.
fn named_program(program: &str, environment: &Environment) -> Result<(), Missing> {
    if environment.path().is_none() || on_path(program, environment).is_some() {
        return Ok(());
    }
    let what = format!(
        "the program {} that the build starts is not in PATH",
        printable(program)
    );
    Err(Missing::new(
        what,
        "install it, or see build.command in code-commit config",
    ))
}

/// If a script's interpreter is missing, the kernel reports the script as missing; a model could not fix
/// that.
fn interpreter(root: &Path, name: &str) -> Result<(), Missing> {
    let mut start = Vec::new();
    let read = fs::File::open(root.join(name))
        .and_then(|file| file.take(LONGEST_FIRST_LINE).read_to_end(&mut start));
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let (Ok(_), Some(line)) = (read, line.strip_prefix(b"#!")) else {
        return Ok(());
    };
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty());
    let program = OsStr::from_bytes(words.next().unwrap_or_default());
    if line.ends_with(b"\r") {
        let hint = format!(
            "save {name} with LF line endings (git: core.autocrlf=false, or `*.sh eol=lf`)"
        );
        return Err(Missing::new(
            format!("{name} has CRLF line endings, so it cannot run"),
            hint,
        ));
    }
    if root.join(program).exists() {
        return Ok(());
    }
    let what = format!(
        "{name} needs {}, which does not exist",
        printable(&program.to_string_lossy())
    );
    Err(Missing::new(
        what,
        format!("install it, or change the first line of {name}"),
    ))
}

/// The bytes of the first line that the kernel reads.
const LONGEST_FIRST_LINE: u64 = 256;

/// Finds an executable by name.
pub(crate) fn on_path(name: &str, environment: &Environment) -> Option<PathBuf> {
    code_commit_runner::programs_in(environment.path(), Path::new(""), name)
        .into_iter()
        .next()
}
