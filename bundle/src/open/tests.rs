use std::collections::BTreeSet;
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;
use tar::{EntryType, Header};

use super::*;
use crate::{MOST_ABOUT, PackError, Survey, pack};

/// A folder with these files, held open.
fn folder(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Folder) {
    let scratch = tempfile::tempdir().unwrap();
    for (name, content) in files {
        code_commit_dir::replace(&scratch.path().join(name), content).unwrap();
    }
    let folder = Folder::open(scratch.path()).unwrap();
    (scratch, folder)
}

fn packed(folder: &Folder, signature: Option<&[u8]>) -> Vec<u8> {
    let manifest = Manifest::new(json!({ "run": "a" }), Survey::of(folder).unwrap()).to_bytes();
    let mut bytes = Vec::new();
    pack(folder, &manifest, signature, &mut bytes).unwrap();
    bytes
}

fn open_bytes(bytes: &[u8], into: Option<&Folder>) -> Result<Opened, OpenError> {
    open(&mut Cursor::new(bytes), into)
}

/// What is below a folder.
fn below(path: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            found.extend(below(&path));
        } else {
            found.insert(path);
        }
    }
    found
}

/// A bundle with a right hash around any archive.
fn sealed(tar: &[u8]) -> Vec<u8> {
    hashed(&compress_to_vec(tar, CompressionLevel::Fastest))
}

/// Any bytes with a right hash.
fn hashed(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut hashing = Hashing::new(&mut all);
    hashing.write_all(bytes).unwrap();
    hashing.finish().unwrap();
    all
}

/// An archive of these entries; the name is written as it is.
fn archive(entries: &[(EntryType, &[u8], &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap()
}

/// A manifest of one file with this name.
fn manifest_of(name: &str, content: &[u8]) -> Vec<u8> {
    let sha256 = {
        let mut hashing = Hashing::new(io::sink());
        hashing.write_all(content).unwrap();
        hashing.hex()
    };
    let files = vec![Item {
        name: name.to_owned(),
        bytes: content.len() as u64,
        sha256,
    }];
    Manifest::new(
        json!({}),
        Survey {
            files,
            ..Survey::default()
        },
    )
    .to_bytes()
}

#[test]
fn a_bundle_brings_every_file_back() {
    let long = format!("left/{}/{}", "d".repeat(120), "f".repeat(200));
    let files: [(&str, &[u8]); 4] = [
        ("run.json", b"{}"),
        ("undo/1/0.old", b"\0\xff"),
        (&long, b"deep"),
        ("empty", b""),
    ];
    let (_scratch, from) = folder(&files);
    let bytes = packed(&from, Some(b"signed"));
    assert_eq!(
        bytes,
        packed(&from, Some(b"signed")),
        "the same files give the same bytes"
    );
    let (target, to) = folder(&[]);
    let opened = open_bytes(&bytes, Some(&to)).unwrap();
    assert_eq!(opened.signature.as_deref(), Some(&b"signed"[..]));
    assert_eq!(opened.manifest.about, json!({ "run": "a" }));
    for (name, content) in files {
        assert_eq!(
            fs::read(target.path().join(name)).unwrap(),
            content,
            "{name}"
        );
    }
    assert_eq!(below(target.path()).len(), files.len());
}

#[test]
fn links_and_odd_names_are_left_out_and_named_and_what_is_withheld_keeps_its_hash() {
    let (scratch, from) = folder(&[("a", b"a"), ("prompt.txt", b"secret plan")]);
    symlink("/etc/passwd", scratch.path().join("link")).unwrap();
    symlink("/", scratch.path().join("root")).unwrap();
    let survey = Survey::of(&from)
        .unwrap()
        .without(|name| name == "prompt.txt");
    let manifest = Manifest::new(json!({}), survey);
    assert_eq!(manifest.left_out, ["link", "root"]);
    let mut bytes = Vec::new();
    pack(&from, &manifest.to_bytes(), None, &mut bytes).unwrap();
    let (target, to) = folder(&[]);
    let opened = open_bytes(&bytes, Some(&to)).unwrap();
    assert_eq!(below(target.path()).len(), 1);
    assert_eq!(
        (
            opened.manifest.withheld[0].name.as_str(),
            opened.manifest.withheld[0].bytes
        ),
        ("prompt.txt", 11)
    );
}

#[test]
fn a_file_that_changes_while_it_is_packed_is_noticed() {
    let (scratch, from) = folder(&[("a", b"one"), ("b", b"two")]);
    let manifest = Manifest::new(json!({}), Survey::of(&from).unwrap()).to_bytes();
    for now in [&b"oneone"[..], b"eno", b"o"] {
        code_commit_dir::replace(&scratch.path().join("a"), now).unwrap();
        let result = pack(&from, &manifest, None, io::sink());
        assert_eq!(
            matches!(result, Err(PackError::Changed { .. })),
            now != b"oneone",
            "{result:?}"
        );
    }
    fs::remove_file(scratch.path().join("a")).unwrap();
    assert!(matches!(
        pack(&from, &manifest, None, io::sink()),
        Err(PackError::Changed { .. })
    ));
}

#[test]
fn a_disk_that_is_full_is_an_error_and_no_panic() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (_scratch, from) = folder(&[("a", &[7; 5000])]);
    let manifest = Manifest::new(json!({}), Survey::of(&from).unwrap()).to_bytes();
    for room in 0..200 {
        assert!(
            matches!(
                pack(&from, &manifest, None, Full(room)),
                Err(PackError::Io { .. })
            ),
            "{room}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_changed_byte_anywhere_is_refused(at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let (_scratch, from) = folder(&[("events.jsonl", b"{}\n{}\n"), ("undo/1/0.old", &[3; 3000])]);
        let mut bytes = packed(&from, Some(b"signature"));
        open_bytes(&bytes, None).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(matches!(open_bytes(&bytes, None), Err(OpenError::Hash)));
    }

    #[test]
    fn any_bytes_with_a_right_hash_are_refused_or_read_and_never_written_elsewhere(
        tar in prop::collection::vec(any::<u8>(), 0..2000),
        packed in any::<bool>(),
    ) {
        let (target, to) = folder(&[]);
        let bytes = if packed { sealed(&tar) } else { hashed(&tar) };
        prop_assert!(open_bytes(&bytes, Some(&to)).is_err());
        prop_assert!(below(target.path()).is_empty());
    }
}

#[test]
fn a_bundle_that_is_cut_off_is_refused() {
    let (_scratch, from) = folder(&[("a", b"a")]);
    let bytes = packed(&from, None);
    for length in 0..bytes.len() {
        assert!(
            matches!(open_bytes(&bytes[..length], None), Err(OpenError::Hash)),
            "{length}"
        );
    }
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let long = "x".repeat(5000);
    let deep = format!("a/{}", "y".repeat(256));
    for name in [
        "../x",
        "/x",
        "a/../../x",
        "a//x",
        "./x",
        "",
        "a\\..\\x",
        "a/",
        "a\0b",
        &long,
        &deep,
    ] {
        let manifest = manifest_of(name, b"x");
        let own = format!("files/{name}");
        let own = &own.as_bytes()[..own.len().min(100)];
        for file in [
            own,
            b"long/0",
            name.as_bytes().get(..name.len().min(100)).unwrap(),
        ] {
            let tar = archive(&[
                (EntryType::Regular, b"manifest.json", &manifest),
                (EntryType::Regular, file, b"x"),
            ]);
            let (target, to) = folder(&[]);
            let error = open_bytes(&sealed(&tar), Some(&to)).unwrap_err();
            assert!(
                matches!(error, OpenError::Malformed { .. }),
                "{name:?}: {error:?}"
            );
            assert!(below(target.path()).is_empty());
        }
    }
}

#[test]
fn links_devices_and_long_name_entries_are_refused() {
    let manifest = manifest_of("a", b"x");
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Directory,
        EntryType::Fifo,
        EntryType::GNULongName,
        EntryType::GNULongLink,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
        EntryType::GNUSparse,
    ] {
        let tar = archive(&[
            (EntryType::Regular, b"manifest.json", &manifest),
            (kind, b"files/a", b"x"),
            (EntryType::Regular, b"files/a", b"x"),
        ]);
        let (target, to) = folder(&[]);
        assert!(
            matches!(
                open_bytes(&sealed(&tar), Some(&to)),
                Err(OpenError::Content { .. })
            ),
            "{kind:?}"
        );
        assert!(below(target.path()).is_empty());
    }
}

#[test]
fn what_the_manifest_does_not_name_and_what_is_missing_is_refused() {
    let manifest = manifest_of("a", b"x");
    let entry = |name: &'static [u8], content: &'static [u8]| (EntryType::Regular, name, content);
    let first = (EntryType::Regular, &b"manifest.json"[..], &manifest[..]);
    for entries in [
        vec![first],
        vec![first, entry(b"files/b", b"x")],
        vec![first, entry(b"files/a", b"y")],
        vec![first, entry(b"files/a", b"xx")],
        vec![first, entry(b"files/a", b"x"), entry(b"files/a", b"x")],
        vec![
            first,
            entry(b"manifest.json.sig", b"s"),
            entry(b"manifest.json.sig", b"s"),
            entry(b"files/a", b"x"),
        ],
        vec![entry(b"files/a", b"x"), first],
        vec![],
    ] {
        assert!(
            open_bytes(&sealed(&archive(&entries)), None).is_err(),
            "{entries:?}"
        );
    }
    let good = vec![first, entry(b"files/a", b"x")];
    open_bytes(&sealed(&archive(&good)), None).unwrap();
}

#[test]
fn a_small_file_that_unpacks_to_a_large_one_is_refused_before_it_is_read() {
    let files = |count: u64, bytes: u64| {
        let item = |number| Item {
            name: format!("{number:09}"),
            bytes,
            sha256: String::new(),
        };
        let survey = Survey {
            files: (0..count).map(item).collect(),
            ..Survey::default()
        };
        Manifest::new(json!({}), survey).to_bytes()
    };
    for manifest in [
        files(2, u64::MAX),
        files(1, MOST_BYTES + 1),
        files(MOST_FILES as u64 + 1, 0),
    ] {
        let tar = archive(&[(EntryType::Regular, b"manifest.json", &manifest)]);
        assert!(matches!(
            open_bytes(&sealed(&tar), None),
            Err(OpenError::Malformed { .. })
        ));
    }
}

#[test]
fn a_file_in_the_place_of_a_folder_is_refused() {
    let files = ["a", "a-b", "a/b"].map(|name| Item {
        name: name.into(),
        bytes: 0,
        sha256: String::new(),
    });
    let manifest = Manifest::new(
        json!({}),
        Survey {
            files: files.into(),
            ..Survey::default()
        },
    )
    .to_bytes();
    assert!(Manifest::read(&manifest).is_none());
}

#[test]
fn what_comes_behind_the_archive_or_its_frame_is_refused() {
    let manifest = manifest_of("a", b"x");
    let entries: [(EntryType, &[u8], &[u8]); 2] = [
        (EntryType::Regular, b"manifest.json", &manifest),
        (EntryType::Regular, b"files/a", b"x"),
    ];
    let tar = archive(&entries);
    let frame = compress_to_vec(&*tar, CompressionLevel::Fastest);
    assert!(open_bytes(&hashed(&frame), None).is_ok());
    let more = compress_to_vec(&*archive(&entries), CompressionLevel::Fastest);
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"more"].concat();
    for (what, bytes) in [
        (
            "an archive behind the archive",
            sealed(&[&tar[..], &tar].concat()),
        ),
        (
            "zeros behind the archive",
            sealed(&[&tar[..], &[0; 512]].concat()),
        ),
        (
            "a byte behind the archive",
            sealed(&[&tar[..], b"x"].concat()),
        ),
        (
            "an archive without its end",
            sealed(&tar[..tar.len() - 1024]),
        ),
        ("half of an end", sealed(&tar[..tar.len() - 512])),
        (
            "a frame behind the frame",
            hashed(&[frame.clone(), more].concat()),
        ),
        (
            "a skipped frame",
            hashed(&[frame.clone(), skipped].concat()),
        ),
        (
            "a byte behind the frame",
            hashed(&[&frame[..], b"x"].concat()),
        ),
    ] {
        assert!(
            matches!(open_bytes(&bytes, None), Err(OpenError::Malformed { .. })),
            "{what}"
        );
    }
}

#[test]
fn the_lists_and_the_text_of_a_manifest_are_bounded_while_they_are_read() {
    let with = |about: &str, left_out: &str| {
        format!(
            r#"{{"format":1,"about":{about},"files":[],"withheld":[],"left_out":[{left_out}]}}"#
        )
    };
    let names = |count: usize| vec![r#""""#; count].join(",");
    let long = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert!(Manifest::read(with(&long(MOST_ABOUT), &names(MOST_FILES)).as_bytes()).is_some());
    assert!(Manifest::read(with("1", &names(MOST_FILES + 1)).as_bytes()).is_none());
    assert!(Manifest::read(with(&long(MOST_ABOUT + 1), "").as_bytes()).is_none());
}
