//! The survey of the tree before a command, on disk while the command runs, so that its changes can be found
//! if the harness is killed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use guard::{Seen, Survey};
use serde::{Deserialize, Serialize};

const NOTE: &str = "tree.json";

/// A path, as text if it is UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

/// [`Seen`] without field names, to save space.
type Row = (Name, u32, u64, (i64, i64), (i64, i64), (u64, u64), (u32, u32));

/// `own` are the paths to skip.
pub(super) fn write(folder: &Path, own: &[PathBuf], survey: &Survey) -> io::Result<()> {
    let row = |(path, seen): &(PathBuf, Seen)| -> Row {
        let name = match path.to_str() {
            Some(text) => Name::Text(text.to_owned()),
            None => Name::Bytes(path.clone().into_os_string().into_vec()),
        };
        (name, seen.mode, seen.len, seen.mtime, seen.ctime, seen.id, seen.owner)
    };
    dir::replace_with(&folder.join(NOTE), |file| {
        let mut file = BufWriter::new(file);
        serde_json::to_writer(&mut file, own)?;
        file.write_all(b"\n")?;
        for one in survey.iter() {
            serde_json::to_writer(&mut file, &row(one))?;
            file.write_all(b"\n")?;
        }
        file.flush()
    })
}

/// `None` if no command was running.
pub(super) fn read(folder: &Path) -> io::Result<Option<(Vec<PathBuf>, Survey)>> {
    let mut file = match File::open(folder.join(NOTE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => BufReader::new(file?),
    };
    let mut own = String::new();
    file.read_line(&mut own)?;
    let own = serde_json::from_str(&own)?;
    let mut found = Vec::new();
    for row in serde_json::Deserializer::from_reader(file).into_iter::<Row>() {
        let (name, mode, len, mtime, ctime, id, owner) = row?;
        let path = match name {
            Name::Text(text) => PathBuf::from(text),
            Name::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        };
        found.push((path, Seen { mode, len, mtime, ctime, id, owner }));
    }
    Ok(Some((own, Survey::new(found))))
}

pub(super) fn remove(folder: &Path) -> io::Result<()> {
    dir::remove(&folder.join(NOTE))
}
