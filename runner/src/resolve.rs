//! Which tools a command in a sandbox would find, compared with its user.

use std::path::{Path, PathBuf};

use crate::Env;
use crate::program::programs_in;

/// Programs by which builds begin.
const TOOLS: [&str; 26] = [
    "cargo", "cc", "clang", "cmake", "ctest", "deno", "g++", "gcc", "go", "gradle", "java",
    "javac", "just", "make", "mvn", "ninja", "node", "npm", "pip", "pnpm", "pytest", "python",
    "python3", "ruby", "rustc", "uv",
];

/// A tool that is another one in the sandbox, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs {
    /// By what name it is started.
    pub name: &'static str,
    /// What the user starts, without symlinks.
    pub outside: PathBuf,
    /// What the command would start.
    pub inside: Option<PathBuf>,
}

/// The tools in `PATH` that a command with this environment, which works in `tree` and [sees](crate::visible) these files,
/// would not find, or find elsewhere.
pub fn differing(env: &Env, tree: &Path, sees: impl Fn(&Path) -> bool) -> Vec<Differs> {
    let differs = |name: &'static str| {
        let places = programs_in(env.get("PATH"), tree, name);
        let real = |place: PathBuf| Some((place.canonicalize().ok()?, place));
        let places: Vec<(PathBuf, PathBuf)> = places.into_iter().filter_map(real).collect();
        let (outside, _) = places.first()?;
        let is_seen = |(real, place): &&(PathBuf, PathBuf)| sees(real) && sees(place);
        let inside = places.iter().find(is_seen).map(|(real, _)| real.clone());
        (inside.as_ref() != Some(outside)).then(|| Differs {
            name,
            outside: outside.clone(),
            inside,
        })
    };
    TOOLS.into_iter().filter_map(differs).collect()
}
