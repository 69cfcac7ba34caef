#![doc = include_str!("../README.md")]

mod characters;
pub mod ours;
mod table;

pub use characters::{is_bidi, is_invisible};
pub use table::{AT_HOME, INPUTS, LEFT_OUT, LOCK_FILES, PROTECTED, RUNS_LATER, SECRETS};

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// What it matches. Of [`PROTECTED`] and [`INPUTS`] a gitignore pattern relative to the root; of [`AT_HOME`] a path below the home folder;
    /// of [`SECRETS`] a name with at most one `*`, first or last; else a name or a path at any level, a folder with a final `/`.
    pub pattern: &'static str,
    /// What follows from it.
    pub kind: Kind,
    /// What it is, in the words of messages.
    pub why: &'static str,
}

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No model may write it.
    Protected(Binds, Writer),
    /// The same, since we or git start what it names without asking: whoever writes it runs code later.
    Starts(Binds),
    /// A run reads it: no model may write it as long as that loop is at work.
    Input,
    /// Another program starts what it holds or names, or others see something else because of it. A model may write it, with a flag.
    RunsLater,
    /// A list of exact versions, which tools write.
    LockFile,
    /// A folder of products that these leave out.
    LeftOut(&'static [By]),
    /// Keys and passwords are kept in it.
    Secret,
    /// Not a secret, whatever else its name looks like.
    NoSecret,
    /// Below the home folder: a tool needs it, so commands may read it. A file that mentions a token is not shown.
    Shown,
    /// Below the home folder: it holds a tool's keys and is hidden, also where the folder around it shows.
    Hidden,
}

/// Whom a protected name binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binds {
    /// Every policy, whatever its scope: the harness's own state and settings.
    Always,
    /// Every policy but a scoped one, whose list of files is a person's own word.
    Unscoped,
    /// `guard::Policy::commit` and stricter: the critical files of S1 §Parsing the Response.
    Commit,
    /// `guard::Policy::implement` only: S0 keeps its records at the root, where a project of another loop may have files of these names.
    Implement,
}

/// Who does write a protected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The harness: its state and its records.
    Harness,
    /// A person, or git at a person's word. No build has to.
    Person,
    /// The build: it could not run without.
    Build,
}

/// Who leaves a folder out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The hash of a tree (S2 §5, which lists them).
    Hash,
    /// The roles of phases: what they are shown, and what is watched.
    Phase,
    /// The agents of specs, where there is no git to say what counts.
    Spec,
}

impl Name {
    /// Whether everything below it is meant, too.
    pub fn is_folder(&self) -> bool {
        self.pattern.ends_with('/')
    }

    /// Its path at the root.
    pub fn at_root(&self) -> &'static str {
        self.pattern.trim_start_matches("**").trim_matches('/')
    }

    /// Whom it binds, of a protected name.
    pub fn binds(&self) -> Option<Binds> {
        let (Kind::Protected(binds, _) | Kind::Starts(binds)) = self.kind else { return None };
        Some(binds)
    }

    /// Who writes it, of a protected name.
    pub fn writer(&self) -> Option<Writer> {
        if let Kind::Protected(_, writer) = self.kind {
            return Some(writer);
        }
        self.binds().map(|_| Writer::Person)
    }

    /// Whether this is the path in lower case, one of a file in this folder, or one that ends so at a `/`.
    fn is_on(&self, path: &str) -> bool {
        let starts = path.match_indices('/').map(|(at, _)| at + 1);
        let mut tails = std::iter::once(0).chain(starts).filter_map(|at| path.get(at..));
        let name = self.at_root();
        tails.any(|tail| match tail.strip_prefix(name) {
            Some("") => !self.is_folder(),
            Some(rest) => self.is_folder() && rest.starts_with('/'),
            None => false,
        })
    }

    /// Whether it matches this name in lower case.
    fn fits(&self, name: &str) -> bool {
        match (self.pattern.strip_prefix('*'), self.pattern.strip_suffix('*')) {
            (Some(end), _) => name.ends_with(end),
            (None, Some(start)) => name.starts_with(start),
            (None, None) => name == self.pattern,
        }
    }
}

/// What no model may write under policies that bind so strictly.
pub fn protected(strictest: Binds) -> impl Iterator<Item = &'static Name> {
    PROTECTED.iter().filter(move |row| row.binds().is_some_and(|binds| binds <= strictest))
}

/// Whether a file of this name, in ASCII letters of any case, is protected in whatever folder it lies.
pub fn is_protected_anywhere(name: &[u8]) -> bool {
    let mut anywhere = PROTECTED.iter().filter(|row| !row.pattern.contains('/'));
    anywhere.any(|row| name.eq_ignore_ascii_case(row.pattern.as_bytes()))
}

/// Why this path in lower case, relative to any root, runs later or changes what others see. Each row counts at every level, since a
/// project may lie in a folder of another.
pub fn runs_later(path: &str) -> Option<&'static Name> {
    let starts = PROTECTED.iter().filter(|row| matches!(row.kind, Kind::Starts(_)));
    starts.chain(RUNS_LATER).find(|row| row.is_on(path))
}

/// Whether a file of this name, in lower case, holds a generated list of versions.
pub fn is_lock_file(name: &str) -> bool {
    LOCK_FILES.iter().any(|row| row.pattern == name)
}

/// Whether keys and passwords are kept in files of this name, in lower case. The first row that fits decides.
pub fn is_secret(name: &str) -> bool {
    SECRETS.iter().find(|row| row.fits(name)).is_some_and(|row| row.kind == Kind::Secret)
}

/// The names of the folders that are left out, at every level.
pub fn left_out(by: By) -> impl Iterator<Item = &'static str> {
    let left_out = move |row: &&Name| matches!(row.kind, Kind::LeftOut(all) if all.contains(&by));
    LEFT_OUT.iter().filter(left_out).map(Name::at_root)
}

/// What is shown or hidden of a tool's folder in the home, relative to that folder, which its own variable may have moved.
pub fn at_home(folder: &str, kind: Kind) -> impl Iterator<Item = &'static str> {
    let below = move |row: &'static Name| row.at_root().strip_prefix(folder)?.strip_prefix('/');
    AT_HOME.iter().filter(move |row| row.kind == kind).filter_map(below)
}

#[cfg(test)]
mod tests;
