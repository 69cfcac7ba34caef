#![doc = include_str!("../README.md")]

mod hash;
mod manifest;
mod open;
mod pack;

pub use manifest::{Item, Manifest, Survey};
pub use open::{OpenError, Opened, open};
pub use pack::{PackError, pack};

const MANIFEST: &str = "manifest.json";
/// The name of the signature's entry.
const SIGNATURE: &str = "manifest.json.sig";
/// The files of the folder, within the archive.
const FILES: &str = "files/";

/// What a bundle may hold. Its bytes may come from anybody.
const MOST_FILES: usize = 100_000;
const MOST_BYTES: u64 = 4 << 30;
const MOST_MANIFEST: u64 = 64 << 20;
const MOST_ABOUT: usize = 64 << 10;
const MOST_SIGNATURE: u64 = 64 << 10;
const LONGEST_NAME: usize = 4096;

/// The name of a file's entry: its own, as far as the format has room for it. The manifest has all of it.
fn entry_name(number: usize, name: &str) -> String {
    const ROOM: usize = 100;
    let own = format!("{FILES}{name}");
    if own.len() <= ROOM {
        own
    } else {
        format!("long/{number}")
    }
}
