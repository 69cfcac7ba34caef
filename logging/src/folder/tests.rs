use super::*;

#[test]
fn two_runs_in_one_second_get_folders_of_their_own() {
    let base = tempfile::tempdir().unwrap();
    let make = || {
        RunFolder::create(
            base.path(),
            "2026-01-01-00-00-00-commit",
            Redactor::default(),
        )
        .unwrap()
    };
    let names: Vec<_> = [make(), make(), make()]
        .map(|f| f.path().file_name().unwrap().to_owned())
        .into();
    assert_eq!(
        names,
        [
            "2026-01-01-00-00-00-commit",
            "2026-01-01-00-00-00-commit-2",
            "2026-01-01-00-00-00-commit-3"
        ]
    );
}

#[test]
fn nothing_is_written_through_a_planted_link() {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "r", Redactor::default()).unwrap();
    let outside = base.path().join("outside");
    for file in ["a", "b"] {
        std::os::unix::fs::symlink(&outside, folder.path().join(file)).unwrap();
    }
    folder.store("a", "text").unwrap();
    folder
        .store_with("b", |out| out.write_all(b"text"))
        .unwrap();
    assert!(!outside.exists());
    assert_eq!(folder.read("a").unwrap(), "text");
}

#[test]
fn nothing_outside_of_the_folder_is_read_or_written() {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "r", Redactor::default()).unwrap();
    let beside = base.path().join("beside");
    File::create(&beside).unwrap();
    for name in [
        "../beside",
        "/etc/passwd",
        beside.to_str().unwrap(),
        "a/../../beside",
        ".",
        "",
    ] {
        let stored = Stored {
            file: name.to_owned(),
            bytes: 0,
            sha256: sha256_hex(b""),
        };
        let errors = [
            folder.store(name, "text").err(),
            folder.store_json(name, &1).err(),
            folder.store_with(name, |out| out.write_all(b"text")).err(),
            folder.create_file(name).err(),
            folder.writer(name).err(),
            folder.adopt(name).err(),
            folder.read(name).err(),
            folder.recall(&stored).err(),
        ];
        assert!(
            errors
                .iter()
                .all(|error| matches!(error, Some(FolderError::Outside { .. }))),
            "{errors:?}"
        );
    }
    assert_eq!(fs::read(beside).unwrap(), b"");
}

#[test]
fn a_key_never_reaches_a_stored_file() {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "r", Redactor::new(["secret-key-77"])).unwrap();
    let (stored, told) = folder
        .store_and_tell("1-query.txt", "the secret-key-77 is")
        .unwrap();
    assert_eq!(
        (folder.recall(&stored).unwrap().as_str(), &*told),
        ("the [key …77] is", "the [key …77] is")
    );
}

#[test]
fn what_was_streamed_is_recalled_and_its_record_tells_the_bytes_on_disk() {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "r", Redactor::new(["secret-key-77"])).unwrap();
    let stored = folder
        .store_with("a", |out| {
            out.write_all(b"the secret-")
                .and_then(|()| out.write_all(b"key-77 \xff is"))
        })
        .unwrap();
    assert_eq!(folder.adopt("a").unwrap().0, stored);
    assert_eq!(folder.recall(&stored).unwrap(), "the [key …77] \u{fffd} is");
    assert_eq!(folder.recall(&stored).unwrap(), "the [key …77] \u{fffd} is");
}

#[test]
fn a_file_changed_behind_our_back_is_not_recalled() {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "r", Redactor::default()).unwrap();
    let stored = folder.store("a", "one").unwrap();
    folder.store("a", "two").unwrap();
    assert!(matches!(
        folder.recall(&stored),
        Err(FolderError::Changed { .. })
    ));
}

#[test]
fn a_file_that_is_stored_again_is_there_at_every_moment() {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "r", Redactor::default()).unwrap();
    folder.store("prompt.txt", "one").unwrap();
    let held = File::open(folder.path().join("prompt.txt")).unwrap();
    folder.store("prompt.txt", "two").unwrap();
    let mut kept = String::new();
    io::Read::read_to_string(&mut &held, &mut kept).unwrap();
    assert_eq!(
        (kept.as_str(), folder.read("prompt.txt").unwrap().as_str()),
        ("one", "two")
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
