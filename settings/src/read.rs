//! Reads one configuration file, and locates errors in it.

use std::io;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use code_commit_names::ours::PROJECT_FILE;
use sha2::{Digest as _, Sha256};

use crate::Options;

/// The maximum size of a configuration file.
const MOST_BYTES: u64 = 1 << 20;

/// A configuration file that was read.
#[derive(Debug)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// The hash of its bytes.
    pub sha256: String,
    /// Its settings.
    pub layer: Options,
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum ReadError {
    /// It exists but cannot be read.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// It is not a regular file, or too large.
    #[error("{} is not a file of at most 1 MiB", .0.display())]
    NoFile(PathBuf),
    #[error("{} is not UTF-8 (at byte {at})", path.display())]
    NotUtf8 {
        path: PathBuf,
        /// The number of valid bytes before them.
        at: usize,
    },
    /// A line is wrong. The text shows the line and marks the position.
    #[error("{0}")]
    Line(String),
}

impl ReadError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check its permissions",
            Self::NoFile(_) => "put a configuration in its place, or move it away",
            Self::NotUtf8 { .. } => "save it as UTF-8",
            Self::Line(_) => "fix or remove the line",
        }
    }
}

/// The file at `path`, if it exists.
pub(crate) fn read(path: &Path) -> Result<Option<File>, ReadError> {
    let bytes = match code_commit_dir::read(path, MOST_BYTES, code_commit_dir::Links::Followed) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(ReadError::NoFile(path.to_owned())),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(source) => {
            let path = path.to_owned();
            return Err(ReadError::Io { path, source });
        }
    };
    let sha256 = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let text = String::from_utf8(bytes).map_err(|error| ReadError::NotUtf8 {
        path: path.to_owned(),
        at: error.utf8_error().valid_up_to(),
    })?;
    let layer = parse(&text).map_err(|error| {
        let name = path.file_name().filter(|name| *name == PROJECT_FILE);
        let name = name.map_or(path, Path::new).display().to_string();
        ReadError::Line(render(&text, &name, &error))
    })?;
    Ok(Some(File {
        path: path.to_owned(),
        sha256,
        layer,
    }))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Reads the text of a configuration file.
pub(crate) fn parse(text: &str) -> Result<Options, toml::de::Error> {
    toml::from_str(text)
}

/// A parser's message for somebody who does not know Rust's types.
pub(crate) fn in_plain_words(message: &str) -> String {
    const TYPES: [(&str, &str); 9] = [
        ("f64", "a number"),
        ("u8", "a whole number"),
        ("u16", "a whole number"),
        ("u32", "a whole number"),
        ("u64", "a whole number"),
        ("usize", "a whole number"),
        ("a boolean", "true or false"),
        ("a sequence", "a list"),
        ("a map", "a table"),
    ];
    let Some((found, wanted)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    let end = wanted.find(" at line ").unwrap_or(wanted.len());
    let (kind, place) = wanted.split_at(end);
    let known = TYPES.iter().find(|(name, _)| *name == kind);
    let kind = match known {
        Some((_, plain)) => plain,
        None if kind.starts_with("struct ") => "a table",
        None => kind,
    };
    format!("{found}, expected {kind}{place}")
}

/// The message with the line and a mark under the position.
pub(crate) fn render(text: &str, name: &str, error: &toml::de::Error) -> String {
    // The mark must be below an existing line, and not inside a character.
    let end = text.trim_end().len();
    let span = error.span().unwrap_or(0..0);
    let start = text.floor_char_boundary(span.start.min(end.saturating_sub(1)));
    let span = start..text.ceil_char_boundary(span.end.clamp(start, end.max(start)));
    let snippet = Snippet::source(text)
        .path(name)
        .annotation(AnnotationKind::Primary.span(span));
    let message = in_plain_words(&error.message().lines().collect::<Vec<_>>().join("; "));
    Renderer::plain().render(&[Level::ERROR
        .no_name()
        .primary_title(message)
        .element(snippet)])
}
