//! Reading one configuration file, and saying where in it an error is.

use std::io;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anyhow::anyhow;

use super::Layer;
use crate::exit::Failure;

/// Larger than any configuration.
const MOST_BYTES: u64 = 1 << 20;

/// A configuration file that could be read.
#[derive(Debug)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// Of its bytes.
    pub sha256: String,
    /// What it says.
    pub layer: Layer,
}

/// The file at `path`, if there is one.
pub fn read(path: &Path) -> Result<Option<File>, Failure> {
    let see = |error: io::Error| {
        let error = anyhow::Error::from(error).context(format!("cannot read {}", path.display()));
        Failure::refused(error, "see who may read it")
    };
    let bytes = match dir::read(path, MOST_BYTES, dir::Links::Followed) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(see(error)),
        Ok(None) => {
            return Err(Failure::refused(
                anyhow!("{} is no file of at most 1 MiB", path.display()),
                "put a configuration in its place, or move it away",
            ));
        }
        Ok(Some(bytes)) => bytes,
    };
    let sha256 = logging::sha256_hex(&bytes);
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::refused(anyhow!("{} is not UTF-8 (at byte {at})", path.display()), "save it as UTF-8")
    })?;
    let layer = parse(&text).map_err(|error| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = if name == super::PROJECT_FILE { name.into_owned() } else { path.display().to_string() };
        Failure::refused(anyhow!(render(&text, &name, &error)), "put the line right, or take it out")
    })?;
    Ok(Some(File { path: path.to_owned(), sha256, layer }))
}

/// Reads the text of a configuration file.
pub(super) fn parse(text: &str) -> Result<Layer, toml::de::Error> {
    toml::from_str(text)
}

/// The message with the line that it is about and a mark under the place.
pub(super) fn render(text: &str, name: &str, error: &toml::de::Error) -> String {
    // A mark at the very end of the text has no line to stand under, and one inside a character no place.
    let end = text.trim_end().len();
    let span = error.span().unwrap_or(0..0);
    let start = text.floor_char_boundary(span.start.min(end.saturating_sub(1)));
    let span = start..text.ceil_char_boundary(span.end.clamp(start, end.max(start)));
    let snippet = Snippet::source(text).path(name).annotation(AnnotationKind::Primary.span(span));
    let message = error.message().lines().collect::<Vec<_>>().join("; ");
    Renderer::plain().render(&[Level::ERROR.no_name().primary_title(message).element(snippet)])
}
