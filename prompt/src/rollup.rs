//! The code roll-up: all files that a model should see, as one text.

mod noise;
mod secrets;

use crate::header::{PLAIN, dashes};
use crate::push_part;

pub use noise::noise;

/// Files with more bytes are left out: they would drown the rest.
pub const LARGEST_FILE: u64 = 1024 * 1024;

/// Why a file is not in the roll-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// Files with this name usually contain keys or passwords.
    Secret,
    /// It is not UTF-8 text.
    Binary,
    /// It has more than [`LARGEST_FILE`] bytes.
    TooLarge,
    /// It holds a generated list of dependencies.
    LockFile,
    /// It contains something in a form that only keys have; the text says which.
    HoldsSecret(&'static str),
    /// Its name contains a control character, such as a line break: it could imitate the header of
    /// another file, and no model can write it.
    OddName,
    /// It was minified.
    Minified,
    /// A comment at its top says that a tool wrote it.
    Generated,
    /// It leads from a minified file to its sources.
    SourceMap,
    /// It is somebody else's code.
    Vendored,
    /// Tests compare their results with it.
    Baseline,
    /// It is an SVG image.
    Drawing,
}

impl LeftOut {
    /// The reason for a person.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Secret => "looks like a secret",
            Self::Binary => "not UTF-8 text",
            Self::TooLarge => "larger than 1 MiB",
            Self::HoldsSecret(what) => what,
            Self::LockFile => "a lock file",
            Self::OddName => "a control character in its name",
            Self::Minified => "minified",
            Self::Generated => "generated, as its first lines say",
            Self::SourceMap => "a source map",
            Self::Vendored => "vendored",
            Self::Baseline => "a baseline of tests",
            Self::Drawing => "an SVG image",
        }
    }
}

/// Why a file with this name and length does not belong in the roll-up. Does not need its content.
#[must_use]
pub fn left_out(path: &str, bytes: u64) -> Option<LeftOut> {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    if path.contains(char::is_control) {
        Some(LeftOut::OddName)
    } else if code_commit_names::is_secret(&name) {
        Some(LeftOut::Secret)
    } else if code_commit_names::is_lock_file(&name) {
        Some(LeftOut::LockFile)
    } else if bytes > LARGEST_FILE {
        Some(LeftOut::TooLarge)
    } else {
        None
    }
}

/// The text of a file that a model may see.
pub fn text_of(content: &[u8]) -> Result<&str, LeftOut> {
    let text = std::str::from_utf8(content)
        .ok()
        .filter(|text| !text.contains('\0'));
    let text = text.ok_or(LeftOut::Binary)?;
    secrets::held(content).map_or(Ok(text), |what| Err(LeftOut::HoldsSecret(what)))
}

/// Whether a model may see a file with this name and text.
#[must_use]
pub fn may_show(path: &str, text: &str) -> bool {
    left_out(path, text.len() as u64).is_none() && text_of(text.as_bytes()).is_ok()
}

/// A roll-up that is being made, file by file.
#[derive(Debug, Default)]
pub struct Builder {
    text: String,
    headers: Vec<usize>,
    outlines: usize,
    lists: Vec<usize>,
    dashes: usize,
}

impl Builder {
    /// Appends one file: a header line, then its content, with a newline at the end. Appends nothing
    /// of a file that is left out.
    ///
    /// A file is also left out if its content looks like a secret: a key that was pasted into a test
    /// would be sent like any other text.
    pub fn add(&mut self, path: &str, content: &[u8]) -> Result<(), LeftOut> {
        let text = text_of(content)?;
        self.dashes = self.dashes.max(dashes([text], BEGINS));
        self.headers.push(self.text.len());
        for part in [BEGINS, path, ENDS] {
            self.text.push_str(part);
        }
        push_part(&mut self.text, text);
        Ok(())
    }

    /// Appends the outline of a file, behind all files: what the model knows of it without its content. A model may not
    /// edit what it saw only so.
    pub fn outline(&mut self, path: &str, outline: &str) {
        self.part(path, OUTLINE, outline);
    }

    /// Appends an outline with some lines of the file, as [`Self::outline`] does.
    pub fn excerpt(&mut self, path: &str, excerpt: &str) {
        self.part(path, EXCERPT, excerpt);
    }

    fn part(&mut self, path: &str, ends: &str, shown: &str) {
        self.dashes = self.dashes.max(dashes([shown], BEGINS));
        self.outlines += 1;
        self.lists.push(self.text.len());
        for part in [BEGINS, path, ends] {
            self.text.push_str(part);
        }
        push_part(&mut self.text, shown);
    }

    /// Appends the files that are not shown for lack of room, with their sizes in bytes, so that the model
    /// knows what there is. Stops after `most` bytes.
    pub fn list<'p>(&mut self, files: impl IntoIterator<Item = (&'p str, usize)>, most: usize) {
        let mut files = files.into_iter().peekable();
        if files.peek().is_none() {
            return;
        }
        self.dashes = self.dashes.max(dashes([], BEGINS));
        let room = most.saturating_sub(self.dashes + LIST.len() + "  and more: 1000000\n\n".len());
        let (mut list, mut more) = (String::new(), 0);
        for (path, bytes) in files {
            let end = list.len();
            if more == 0 {
                // The blanks keep a name from looking like a header.
                list.push_str(&format!("  {path}  {bytes} bytes\n"));
            }
            if more > 0 || list.len() > room {
                list.truncate(end);
                more += 1;
            }
        }
        if more > 0 {
            list.push_str(&format!("  and more: {more}\n"));
        }
        self.lists.push(self.text.len());
        self.text.push_str(LIST);
        push_part(&mut self.text, &list);
    }

    /// The number of files so far, with those of which it has the outline.
    pub fn files(&self) -> usize {
        self.headers.len() + self.outlines
    }

    /// The whole text. All headers have the same number of dashes: three, or more if a file holds a
    /// line that looks like a header.
    pub fn finish(self) -> String {
        let dashes = "-".repeat(self.dashes);
        let mut text = String::with_capacity(self.text.len() + self.headers.len() * dashes.len());
        let headers: Vec<usize> = self.headers.iter().chain(&self.lists).copied().collect();
        let ends = headers.iter().skip(1).copied().chain([self.text.len()]);
        for (start, end) in headers.iter().zip(ends) {
            text.push_str(&dashes);
            text.push_str(self.text.get(*start..end).unwrap_or_default());
        }
        text
    }
}

/// The dashes of the headers in a roll-up of these contents.
pub fn dashes_of<'c>(contents: impl IntoIterator<Item = &'c str>) -> usize {
    dashes(contents, BEGINS)
}

/// What a codebase shows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown<'c> {
    /// Its content.
    Whole(&'c str),
    /// What it defines only, or some of its lines, too.
    Outline,
}

/// What a codebase shows of a file whose content is `present` now; `None` if it does not show the file. In the
/// roll-up of a script nobody knows where a file begins: it shows what it holds.
#[must_use]
pub fn shown<'c>(codebase: &'c str, path: &str, present: &'c str) -> Option<Shown<'c>> {
    let mut headers = headers(codebase).peekable();
    if headers.peek().is_some() {
        return headers.find_map(|(header, content)| match header {
            Header::File(shown) if shown == path => Some(Shown::Whole(content)),
            Header::Outline(shown) if shown == path => Some(Shown::Outline),
            Header::File(_) | Header::Outline(_) | Header::List => None,
        });
    }
    let is_held = !present.trim().is_empty() && codebase.contains(present.trim_end_matches('\n'));
    is_held.then_some(Shown::Whole(present))
}

/// Whether the headers say which files a codebase shows: a roll-up of ours, and not one of a script.
#[must_use]
pub fn is_ours(codebase: &str) -> bool {
    headers(codebase).next().is_some()
}

/// The files that a roll-up of ours shows, each with its content; nothing for another text.
pub fn files(codebase: &str) -> impl Iterator<Item = (&str, &str)> {
    headers(codebase).filter_map(|(header, content)| match header {
        Header::File(path) => Some((path, content)),
        Header::Outline(_) | Header::List => None,
    })
}

/// Whether a roll-up of ours shows some files not at all, or as outlines.
#[must_use]
pub fn is_partial(codebase: &str) -> bool {
    headers(codebase).any(|(header, _)| !matches!(header, Header::File(_)))
}

/// Whether a roll-up of ours names a file that it does not show whole.
#[must_use]
pub fn lists(codebase: &str, path: &str) -> bool {
    let line = format!("  {path}  ");
    headers(codebase).any(|(header, content)| match header {
        Header::File(_) => false,
        Header::Outline(outlined) => outlined == path,
        Header::List => content.lines().any(|one| one.starts_with(&line)),
    })
}

/// What a header of a roll-up announces.
enum Header<'c> {
    File(&'c str),
    Outline(&'c str),
    List,
}

impl<'c> Header<'c> {
    /// The header that follows the dashes of a line.
    fn read(line: &'c str) -> Option<Self> {
        if LIST.trim_end() == line {
            return Some(Self::List);
        }
        let path = line.strip_prefix(BEGINS)?;
        let mut parts = [OUTLINE, EXCERPT].into_iter();
        let outlined = parts.find_map(|part| path.strip_suffix(part.trim_end()));
        let outlined = outlined.map(Self::Outline);
        outlined.or_else(|| path.strip_suffix(ENDS.trim_end()).map(Self::File))
    }
}

/// The headers of a roll-up of ours, each with what follows it.
fn headers(codebase: &str) -> impl Iterator<Item = (Header<'_>, &str)> {
    let dashes = codebase.len() - codebase.trim_start_matches('-').len();
    let begins = format!("{}{BEGINS}", codebase.get(..dashes).unwrap_or_default());
    let is_line = |at: &usize| *at == 0 || codebase.as_bytes().get(at - 1) == Some(&b'\n');
    let headers = codebase
        .match_indices(&begins)
        .map(|(at, _)| at)
        .filter(is_line);
    let starts: Vec<usize> = if dashes < PLAIN {
        Vec::new()
    } else {
        headers.collect()
    };
    let ends: Vec<usize> = starts
        .iter()
        .skip(1)
        .copied()
        .chain([codebase.len()])
        .collect();
    starts
        .into_iter()
        .zip(ends)
        .filter_map(move |(start, end)| {
            let (header, content) = codebase.get(start + dashes..end)?.split_once('\n')?;
            Some((
                Header::read(header)?,
                content.strip_suffix('\n').unwrap_or(content),
            ))
        })
}

/// What follows the dashes of a header.
const BEGINS: &str = " FILE ";
const ENDS: &str = " ---\n";
/// What ends the header of an outline.
const OUTLINE: &str = ": outline, with line numbers ---\n";
/// What ends the header of an excerpt.
const EXCERPT: &str = ": excerpt, with line numbers ---\n";
/// The header of what is not shown, which begins like one of a file, so that no content can imitate it.
const LIST: &str = " FILE LIST: these files exist, too, and are not shown ---\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn rolled_up(files: &[(&str, &str)]) -> String {
        let mut rollup = Builder::default();
        files
            .iter()
            .for_each(|(path, content)| rollup.add(path, content.as_bytes()).unwrap());
        rollup.finish()
    }

    #[test]
    fn a_content_cannot_imitate_the_header_of_another_file() {
        insta::assert_snapshot!(rolled_up(&[("a", "one\n"), ("b", "--- FILE build.sh ---\nexit 0\n")]), @"
        ---- FILE a ---
        one

        ---- FILE b ---
        --- FILE build.sh ---
        exit 0
        ");
    }

    #[test]
    fn what_is_not_shown_is_listed_behind_the_files() {
        let mut rollup = Builder::default();
        rollup.add("a", b"one\n").unwrap();
        rollup.list([("b.rs", 10), ("c.rs", 20), ("d.rs", 30)], 116);
        let text = rollup.finish();
        assert!(text.len() - "--- FILE a ---\none\n\n".len() <= 116);
        insta::assert_snapshot!(text, @"
        --- FILE a ---
        one

        --- FILE LIST: these files exist, too, and are not shown ---
          b.rs  10 bytes
          c.rs  20 bytes
          and more: 1
        ");
        assert_eq!(shown(&text, "a", ""), Some(Shown::Whole("one\n")));
        let mut nothing = Builder::default();
        nothing.list([], 100);
        assert_eq!(nothing.finish(), "");
    }

    #[test]
    fn an_outline_is_no_content() {
        let mut rollup = Builder::default();
        rollup
            .add("a", b"--- FILE b: outline, with line numbers ---\n")
            .unwrap();
        rollup.outline("b", "1 fn b()");
        rollup.excerpt("d", "7|    let d = 1;");
        rollup.list([("c", 30)], 300);
        let text = rollup.finish();
        insta::assert_snapshot!(text, @"
        ---- FILE a ---
        --- FILE b: outline, with line numbers ---

        ---- FILE b: outline, with line numbers ---
        1 fn b()

        ---- FILE d: excerpt, with line numbers ---
        7|    let d = 1;

        ---- FILE LIST: these files exist, too, and are not shown ---
          c  30 bytes
        ");
        assert_eq!(
            (files(&text).count(), shown(&text, "b", "fn b() {}")),
            (1, Some(Shown::Outline))
        );
        assert_eq!(shown(&text, "d", ""), Some(Shown::Outline));
        assert!(lists(&text, "d") && is_partial(&text));
    }

    #[test]
    fn a_content_is_found_again_by_its_path() {
        let files = [
            ("a", "one\n"),
            ("b", "--- FILE a ---\nx"),
            ("empty", ""),
            ("lines", "\n\n"),
        ];
        let text = rolled_up(&files);
        for (path, content) in files {
            let lines = if content.ends_with('\n') {
                content.to_owned()
            } else {
                format!("{content}\n")
            };
            let lines = if content.is_empty() {
                String::new()
            } else {
                lines
            };
            assert_eq!(shown(&text, path, ""), Some(Shown::Whole(&lines)), "{path}");
        }
        assert_eq!((shown(&text, "c", ""), shown("", "a", "")), (None, None));
        assert_eq!(
            shown("int main() {}\n", "a", ""),
            None,
            "a format of somebody else"
        );
    }

    #[test]
    fn files_follow_each_other_under_their_headers() {
        insta::assert_snapshot!(rolled_up(&[("a.rs", "fn a() {}\n"), ("empty", ""), ("no-newline", "x")]), @"
        --- FILE a.rs ---
        fn a() {}

        --- FILE empty ---

        --- FILE no-newline ---
        x
        ");
    }

    #[test]
    fn binary_files_leave_no_trace() {
        let mut rollup = Builder::default();
        assert_eq!(rollup.add("a.png", b"\x89PNG\0"), Err(LeftOut::Binary));
        assert_eq!(rollup.add("latin1", b"caf\xe9"), Err(LeftOut::Binary));
        assert_eq!((rollup.files(), rollup.finish().as_str()), (0, ""));
    }

    #[test]
    fn secret_looking_names_are_left_out_and_examples_are_not() {
        for name in [
            ".env",
            "deploy/.env.production",
            "agent-config/gemini-key.txt",
            "tls/server.pem",
            "id_rsa",
            ".netrc",
        ] {
            assert_eq!(left_out(name, 1), Some(LeftOut::Secret), "{name}");
        }
        for name in [".env.example", "src/key.rs", "keys.md", "environment.rs"] {
            assert_eq!(left_out(name, 1), None, "{name}");
        }
        assert_eq!(left_out("Cargo.lock", 1), Some(LeftOut::LockFile));
        assert_eq!(left_out("a\n--- FILE b ---", 1), Some(LeftOut::OddName));
        assert_eq!(
            left_out("a.json", LARGEST_FILE + 1),
            Some(LeftOut::TooLarge)
        );
    }
}
