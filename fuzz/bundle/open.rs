//! Any bytes as a bundle: refused, or read whole. Nothing is written outside of the folder, and what was read can be
//! packed and read again.
#![no_main]

use std::fs;
use std::io::Cursor;

use code_commit_bundle::Survey;
use code_commit_dir::Folder;
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

// The first byte says how deep the others are: no mutation gets past a hash by chance.
fuzz_target!(|bytes: &[u8]| {
    let Some((depth, rest)) = bytes.split_first() else {
        return;
    };
    match depth % 4 {
        0 => check(rest),
        1 => check(&hashed(rest)),
        2 => check(&hashed(&frame(rest))),
        _ => check(&hashed(&frame(&archive(rest)))),
    }
});

fn check(bytes: &[u8]) {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let inside = scratch.path().join("inside");
    fs::create_dir(&inside).expect("a folder");
    let folder = Folder::open(&inside).expect("the folder");
    let opened = code_commit_bundle::open(&mut Cursor::new(bytes), Some(&folder));
    let beside = fs::read_dir(scratch.path())
        .expect("the temporary folder")
        .count();
    assert_eq!(beside, 1, "something was written outside of the folder");
    let Ok(opened) = opened else { return };
    let survey = Survey::of(&folder).expect("a folder that can be read");
    assert_eq!(survey.files, opened.manifest.files);
    assert!(survey.left_out.is_empty(), "{:?}", survey.left_out);
    let mut packed = Vec::new();
    let signature = opened.signature.as_deref();
    code_commit_bundle::pack(&folder, &opened.manifest_bytes, signature, &mut packed)
        .expect("what was read can be packed");
    let again = code_commit_bundle::open(&mut Cursor::new(&packed), None)
        .expect("what was packed can be read");
    assert_eq!(
        (again.manifest, again.signature),
        (opened.manifest, opened.signature)
    );
}

/// With the right end behind them.
fn hashed(bytes: &[u8]) -> Vec<u8> {
    let whole = [bytes, &[0x50, 0x2a, 0x4d, 0x18, 32, 0, 0, 0]].concat();
    let hash = Sha256::digest(&whole);
    [&whole, hash.as_slice()].concat()
}

/// One Zstandard frame of one block that is not compressed.
fn frame(content: &[u8]) -> Vec<u8> {
    let content = &content[..content.len().min(100_000)];
    let size = u32::try_from(content.len()).expect("a small number");
    let block = (size << 3 | 1).to_le_bytes();
    [
        &[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..],
        &size.to_le_bytes(),
        &block[..3],
        content,
    ]
    .concat()
}

/// An archive with a right manifest, or with the first piece as its manifest if that is not empty. Each further piece is
/// a file: its name, a line feed, its content.
fn archive(bytes: &[u8]) -> Vec<u8> {
    let mut pieces = bytes.split(|byte| *byte == 0xff);
    let manifest = pieces.next().unwrap_or_default();
    let file = |piece: &'_ [u8]| {
        let end = piece
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(piece.len());
        let (name, content) = piece.split_at(end);
        (String::from_utf8_lossy(name).into_owned(), content.to_vec())
    };
    let mut files: Vec<(String, Vec<u8>)> = pieces.map(file).collect();
    files.sort();
    let manifest = if manifest.is_empty() {
        right(&files)
    } else {
        manifest.to_vec()
    };
    let mut tar = Builder::new(Vec::new());
    append(&mut tar, b"manifest.json", &manifest);
    for (name, content) in &files {
        append(&mut tar, format!("files/{name}").as_bytes(), content);
    }
    tar.into_inner().expect("an archive in memory")
}

fn right(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let hex = |content: &[u8]| -> String {
        Sha256::digest(content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    let item = |(name, content): &(String, Vec<u8>)| json!({ "name": name, "bytes": content.len(), "sha256": hex(content) });
    let files: Vec<_> = files.iter().map(item).collect();
    json!({ "format": 1, "about": {}, "files": files, "withheld": [], "left_out": [] })
        .to_string()
        .into_bytes()
}

/// The name as it is, whatever the library thinks of it.
fn append(tar: &mut Builder<Vec<u8>>, name: &[u8], content: &[u8]) {
    let mut header = Header::new_ustar();
    let room = &mut header.as_old_mut().name;
    let length = name.len().min(room.len());
    room[..length].copy_from_slice(&name[..length]);
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_cksum();
    tar.append(&header, content).expect("an archive in memory");
}
