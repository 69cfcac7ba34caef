//! What is on disk while a command runs, and until its answer is recorded, so that its changes can be found if
//! the harness is killed: the survey of the tree before it, and the name of the set that adopts its changes.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use code_commit_guard::{Seen, Survey};
use serde::{Deserialize, Serialize};

const NOTE: &str = "tree.json";
const ADOPTED: &str = "adopted";
/// Folder in the run folder that holds the state before a command while the command runs.
pub(super) const BEFORE: &str = "before";
/// The name of a set is short.
const MOST_BYTES: u64 = 1 << 10;

/// What a killed harness left.
pub(super) struct Noted {
    /// The paths to skip, and the tree before the command, if it worked in the tree.
    pub(super) survey: Option<(Vec<PathBuf>, Survey)>,
    /// The name of the set, if its changes had begun to be adopted.
    pub(super) adopted: Option<String>,
}

/// A path, as text if it is UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

/// [`Seen`] without field names, to save space.
type Row = (
    Name,
    u32,
    u64,
    (i64, i64),
    (i64, i64),
    (u64, u64),
    (u32, u32),
);

/// `own` are the paths to skip.
pub(super) fn write(folder: &Path, own: &[PathBuf], survey: &Survey) -> io::Result<()> {
    let row = |(path, seen): &(PathBuf, Seen)| -> Row {
        let name = match path.to_str() {
            Some(text) => Name::Text(text.to_owned()),
            None => Name::Bytes(path.clone().into_os_string().into_vec()),
        };
        (
            name, seen.mode, seen.len, seen.mtime, seen.ctime, seen.id, seen.owner,
        )
    };
    code_commit_dir::replace_with(&folder.join(NOTE), |file| {
        let mut file = BufWriter::new(file);
        serde_json::to_writer(&mut file, own)?;
        file.write_all(b"\n")?;
        let mut rows = 0_usize;
        for one in survey.iter() {
            serde_json::to_writer(&mut file, &row(one))?;
            file.write_all(b"\n")?;
            rows += 1;
        }
        writeln!(file, "{rows}")?;
        file.flush()
    })
}

/// The changes are about to be adopted in this set of pre-images. Without a survey the note is all that tells of
/// them; with one, it only has to be on disk when the answer is, which is synced with everything else.
pub(super) fn adopting(folder: &Path, set: &Path) -> io::Result<()> {
    let (note, name) = (
        folder.join(ADOPTED),
        set.file_name().unwrap_or_default().as_encoded_bytes(),
    );
    if folder.join(NOTE).exists() {
        return code_commit_dir::replace_with(&note, |file| file.write_all(name));
    }
    code_commit_dir::replace(&note, name)
}

/// Whether there is a survey, readable or not.
pub(super) fn is_there(folder: &Path) -> bool {
    folder.join(NOTE).symlink_metadata().is_ok()
}

/// `None` if no command was running, and the answer of the last one is recorded.
pub(super) fn read(folder: &Path) -> io::Result<Option<Noted>> {
    let survey = read_survey(folder)?;
    let adopted = match code_commit_dir::read(
        &folder.join(ADOPTED),
        MOST_BYTES,
        code_commit_dir::Links::Refused,
    ) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        adopted => adopted?.and_then(|name| String::from_utf8(name).ok()),
    };
    // It becomes a path.
    let adopted =
        adopted.filter(|name| !name.is_empty() && !name.contains(['/', '\0']) && name != "..");
    Ok((survey.is_some() || adopted.is_some()).then_some(Noted { survey, adopted }))
}

fn read_survey(folder: &Path) -> io::Result<Option<(Vec<PathBuf>, Survey)>> {
    let file = match File::open(folder.join(NOTE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => BufReader::new(file?),
    };
    let mut lines = file.lines();
    let own = lines
        .next()
        .transpose()?
        .and_then(|line| serde_json::from_str(&line).ok());
    let (mut found, mut rows) = (Vec::new(), None);
    for line in lines {
        let line = line?;
        let Ok((name, mode, len, mtime, ctime, id, owner)) = serde_json::from_str::<Row>(&line)
        else {
            rows = line.parse().ok();
            break;
        };
        let path = match name {
            Name::Text(text) => PathBuf::from(text),
            Name::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        };
        found.push((
            path,
            Seen {
                mode,
                len,
                mtime,
                ctime,
                id,
                owner,
                // Recovery restores what was ignored like everything else.
                is_ignored: false,
            },
        ));
    }
    // A power cut may have left a part of it, which would make every other file look new.
    let is_whole = rows == Some(found.len());
    Ok(own
        .filter(|_| is_whole)
        .map(|own| (own, Survey::new(found))))
}

/// The survey first: without the name of the set it would have a recorded answer's changes restored.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    code_commit_dir::remove(&folder.join(NOTE))?;
    code_commit_dir::remove(&folder.join(ADOPTED))
}
