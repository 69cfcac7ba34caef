//! What models do wrong that only shows beside the old file.

use code_commit_parser::habits::{
    LineEnds, Shrink, diff_prefix, line_ends_changed, loses_byte_order_mark, placeholders, shrink,
};

#[test]
fn a_placeholder_on_an_added_line_is_found() {
    let placeholder = |line: &str| {
        placeholders("fn a() {}\n", line)
            .iter()
            .map(|found| found.line)
            .collect::<Vec<_>>()
    };
    for line in [
        "// ... rest of the code unchanged ...",
        "    # rest of the file",
        "/* existing code ... */",
        "<!-- … unchanged … -->",
        "-- omitted for brevity",
        "... existing imports ...",
        "{/* ... other fields remain the same ... */}",
        "[... rest of file unchanged ...]",
        "(rest of the implementation)",
        "  // Rest of the code remains unchanged",
        "* ... previous methods",
        "// … keep the rest of main as before …",
    ] {
        assert_eq!(placeholder(line), [1], "{line}");
    }
}

#[test]
fn what_only_sounds_like_a_placeholder_is_none() {
    for line in [
        "let rest = ...existing;",
        "// The rest of them are handled below.",
        "// Existing code calls this twice.",
        "// Loading...",
        "print(\"rest of the code\")",
        "for x in rest { unchanged(x) }",
        "...args",
        "// keeps unchanged files as they are",
        "",
    ] {
        assert!(placeholders("", line).is_empty(), "{line}");
    }
}

#[test]
fn a_placeholder_that_the_old_file_has_is_not_told() {
    let old = "// ... existing code ...\n";
    let new = "fn a() {}\n    // ... existing code ...\n// ... rest unchanged\n";
    let found = placeholders(old, new);
    assert_eq!(
        found
            .iter()
            .map(|found| (found.line, found.text))
            .collect::<Vec<_>>(),
        [(3, "// ... rest unchanged")]
    );
}

#[test]
fn a_file_that_loses_more_than_four_fifths_has_shrunk() {
    assert_eq!(
        shrink(&[0; 100], &[0; 19]),
        Some(Shrink {
            before: 100,
            after: 19
        })
    );
    assert_eq!(shrink(&[0; 100], &[0; 20]), None);
    assert_eq!(shrink(b"", b""), None);
    assert_eq!(
        shrink(b"x", b""),
        Some(Shrink {
            before: 1,
            after: 0
        })
    );
}

#[test]
fn a_folder_of_a_diff_is_told_where_there_is_no_such_folder() {
    assert_eq!(diff_prefix("a/src/main.rs", |_| false), Some("src/main.rs"));
    assert_eq!(diff_prefix("b/x", |path| path == "a"), Some("x"));
    assert_eq!(diff_prefix("a/src/main.rs", |path| path == "a"), None);
    assert_eq!(diff_prefix("a/", |_| false), None);
    assert_eq!(diff_prefix("abc/x", |_| false), None);
}

#[test]
fn another_style_of_line_ends_is_seen() {
    use LineEnds::{CrLf, Lf, Mixed};
    assert_eq!(
        line_ends_changed(b"a\r\nb\r\n", b"a\nb\n"),
        Some((CrLf, Lf))
    );
    assert_eq!(line_ends_changed(b"a\nb", b"a\r\nb\r\n"), Some((Lf, CrLf)));
    assert_eq!(
        line_ends_changed(b"a\r\nb\r\n", b"a\r\nb\n"),
        Some((CrLf, Mixed))
    );
    for (old, new) in [
        ("a\nb\r\n", "a\n"),
        ("a\r\n", "b\r\nc"),
        ("a", "a\r\n"),
        ("a\r\n", "a"),
        ("a\rb\n", "a\n"),
    ] {
        assert_eq!(
            line_ends_changed(old.as_bytes(), new.as_bytes()),
            None,
            "{old:?} {new:?}"
        );
    }
}

#[test]
fn a_byte_order_mark_that_is_dropped_is_seen() {
    assert!(loses_byte_order_mark("\u{feff}a".as_bytes(), b"a"));
    assert!(!loses_byte_order_mark(
        "\u{feff}a".as_bytes(),
        "\u{feff}b".as_bytes()
    ));
    assert!(!loses_byte_order_mark(b"a", b"b"));
}
