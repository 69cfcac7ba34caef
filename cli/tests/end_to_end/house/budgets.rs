//! A file is as long as its thought, and no longer than a person reads in one go.

use super::sources;

/// Lines of a source file, comments included, tests apart.
const MOST: usize = 600;

#[test]
fn no_source_file_is_longer_than_a_person_reads_in_one_go() {
    let longer: Vec<String> = sources()
        .into_iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > MOST)
        .map(|(name, lines)| format!("{name}: {lines}"))
        .collect();
    assert_eq!(longer, [""; 0]);
}
