//! The grammar of S0 and S1, each rule and each error.

use crate::show::check;
use code_commit_parser::parse;

#[test]
fn a_file_is_the_bytes_between_its_markers() {
    insta::assert_snapshot!(check("Here:\n^^^src/a.rs\nfn a() {}\n\n^^^end\nDone."), @r#"write "src/a.rs" "fn a() {}\n\n" at 6..36"#);
}

#[test]
fn blanks_around_a_marker_and_its_word_are_tolerated() {
    insta::assert_snapshot!(check(" \t^^^  src/a.rs \t\nx\n\u{a0}^^^ end  \n   $ $$\n^^^ b c.rs\n\t^^^ delete"), @r#"
    write "src/a.rs" "x\n" at 0..32
    delete "b c.rs" at 40..62
    "#);
}

#[test]
fn a_file_is_deleted() {
    insta::assert_snapshot!(check("^^^a\n^^^delete\n^^^b\n\n  ^^^ delete\n"), @r#"
    delete "a" at 0..15
    delete "b" at 15..34
    "#);
}

#[test]
fn thoughts_of_every_kind_are_read_in_any_order() {
    insta::assert_snapshot!(
        check("%%%start\nd1\n%%%end\n&&&start\nu1\n&&&end\n^^^a\n^^^end\n%%%start\n%%%end\n&&&start\nu2\n&&&end"),
        @r#"
    write "a" "" at 38..50
    user "u1\n"
    user "u2\n"
    debug "d1\n"
    debug ""
    "#
    );
}

#[test]
fn a_marker_in_the_middle_of_a_line_is_content() {
    insta::assert_snapshot!(check("^^^a\nlet x = \"^^^b\";\n// &&&start\n^^^end\nwrite ^^^c there"), @r#"write "a" "let x = \"^^^b\";\n// &&&start\n" at 0..40"#);
}

#[test]
fn a_longer_fence_holds_everything_but_its_own_end() {
    insta::assert_snapshot!(
        check("^^^^doc.md\n^^^a\nx\n^^^end\n^^^^^end\n&&&start\n%%%end\nx^^^^end\n^^^^end\n"),
        @r#"write "doc.md" "^^^a\nx\n^^^end\n^^^^^end\n&&&start\n%%%end\nx^^^^end\n" at 0..67"#
    );
}

#[test]
fn a_thought_may_have_a_longer_fence_too() {
    insta::assert_snapshot!(check("&&&&start\nclose with\n&&&end\n&&&&end\n$$$$$start\n$$$$$end"), @r#"
    user "close with\n&&&end\n"
    no change ""
    "#);
}

#[test]
fn an_unterminated_block_is_an_error() {
    insta::assert_snapshot!(check("^^^a\n^^^end\n\n&&&start\nx"), @r#"
    unterminated 4:1 "&&&start"
      line 4: the block of `&&&start` is never closed; write `&&&end` on a line of its own after the last line of the content
    "#);
}

#[test]
fn an_opening_inside_a_block_is_one_error_whatever_was_meant() {
    insta::assert_snapshot!(check("^^^a\nx\n^^^b\ny\n^^^end\n"), @r#"
    nested 3:1 "^^^b"
      line 3: `^^^b` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("^^^a\n&&&start\n^^^end\n&&&end\n"), @r#"
    nested 2:1 "&&&start"
      line 2: `&&&start` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("&&&start\n^^^a\n^^^end\n&&&end\n"), @r#"
    nested 2:1 "^^^a"
      line 2: `^^^a` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
}

#[test]
fn an_end_without_its_opening_is_an_error() {
    insta::assert_snapshot!(check("^^^end\n^^^a\n^^^end\n&&&end\n^^^^end"), @r#"
    stray-end 1:1 "^^^end"
      line 1: `^^^end` closes nothing; remove it, or open its block before it, at the beginning of a line
    stray-end 4:1 "&&&end"
      line 4: `&&&end` closes nothing; remove it, or open its block before it, at the beginning of a line
    stray-end 5:1 "^^^^end"
      line 5: `^^^^end` closes nothing; remove it, or open its block before it, at the beginning of a line
    "#);
    insta::assert_snapshot!(check("^^^a\n%%%end\n^^^end\n"), @r#"
    nested 2:1 "%%%end"
      line 2: `%%%end` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("&&&start\n^^^end\n^^^delete\n&&&end\n$$$start\n$$$end\n"), @r#"
    nested 2:1 "^^^end"
      line 2: `^^^end` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    nested 3:1 "^^^delete"
      line 3: `^^^delete` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
}

#[test]
fn a_delete_without_a_name_is_an_error() {
    insta::assert_snapshot!(check("^^^delete\n"), @r#"
    stray-delete 1:1 "^^^delete"
      line 1: `^^^delete` has no file name before it; write `^^^PATH` at the beginning of the line before it
    "#);
}

#[test]
fn an_end_after_a_delete_has_its_own_error() {
    insta::assert_snapshot!(check("^^^a\n^^^delete\n\n^^^end\n"), @r#"
    end-after-delete 4:1 "^^^end"
      line 4: `^^^end` after a `delete` that has already closed the block; remove it
    "#);
    insta::assert_snapshot!(check("^^^a\n^^^delete\nDone.\n^^^end\n"), @r#"
    stray-end 4:1 "^^^end"
      line 4: `^^^end` closes nothing; remove it, or open its block before it, at the beginning of a line
    "#);
}

#[test]
fn content_before_a_delete_is_an_error() {
    insta::assert_snapshot!(check("^^^a\nold\n^^^delete\n"), @r#"
    content-before-delete 3:1 "^^^delete"
      line 3: the file to delete has content, too (see line 1); write `^^^delete` right after `^^^PATH`, or `^^^end` to replace the file
    "#);
}

#[test]
fn a_fence_without_a_name_is_an_error() {
    insta::assert_snapshot!(check("^^^\nx\n^^^end\n"), @r#"
    missing-name 1:1 "^^^"
      line 1: `^^^` has no file name; write the path after the fence, as in `^^^src/main.rs`
    "#);
}

#[test]
fn a_control_character_in_a_name_is_an_error() {
    insta::assert_snapshot!(check("^^^a\u{7}b\n^^^end\n^^^c\td\n^^^end\n^^^e\u{85}f\n^^^end"), @r#"
    control-in-name 1:1 "^^^a\u{7}b"
      line 1: the file name in `^^^a\u{7}b` has a control character in it; write the bare path and nothing else on that line
    control-in-name 3:1 "^^^c\td"
      line 3: the file name in `^^^c\td` has a control character in it; write the bare path and nothing else on that line
    control-in-name 5:1 "^^^e\u{85}f"
      line 5: the file name in `^^^e\u{85}f` has a control character in it; write the bare path and nothing else on that line
    "#);
}

#[test]
fn a_name_in_quotes_or_brackets_is_an_error() {
    insta::assert_snapshot!(check("^^^`a`\n^^^end\n^^^\"b\"\n^^^end\n^^^**c**\n^^^delete\n^^^[d]\n^^^end\n"), @r#"
    quoted-name 1:1 "^^^`a`"
      line 1: the file name in `^^^`a`` is in quotes or brackets; write the bare path and nothing else on that line
    quoted-name 3:1 "^^^\"b\""
      line 3: the file name in `^^^"b"` is in quotes or brackets; write the bare path and nothing else on that line
    quoted-name 5:1 "^^^**c**"
      line 5: the file name in `^^^**c**` is in quotes or brackets; write the bare path and nothing else on that line
    quoted-name 7:1 "^^^[d]"
      line 7: the file name in `^^^[d]` is in quotes or brackets; write the bare path and nothing else on that line
    "#);
}

#[test]
fn names_with_brackets_inside_are_names() {
    insta::assert_snapshot!(check("^^^app/[id]/page.tsx\n^^^end\n^^^[slug].tsx\n^^^end\n^^^'\n^^^end\n"), @r#"
    write "app/[id]/page.tsx" "" at 0..28
    write "[slug].tsx" "" at 28..49
    write "'" "" at 49..61
    "#);
}

#[test]
fn an_end_glued_to_the_last_line_has_its_own_error() {
    insta::assert_snapshot!(check("^^^a\n}^^^end \r\nmore\n^^^b\ny\n^^^end\n"), @r#"
    glued-end 2:2 "^^^end"
      line 2: `^^^end` is at the end of a line of content (see line 1); write it on its own line
    "#);
}

#[test]
fn an_end_of_another_length_has_its_own_error() {
    insta::assert_snapshot!(check("^^^a\nx\n^^^^end\n^^^b\n^^^end\n"), @r#"
    end-length 3:1 "^^^^end"
      line 3: `^^^^end` does not have the length of the fence that it should close (see line 1); close a block with exactly as many characters as opened it
    "#);
}

#[test]
fn a_word_with_something_around_it_has_its_own_error() {
    insta::assert_snapshot!(check("^^^a\nx\n^^^END\n^^^b\ny\n^^^end b\n^^^Delete c\n^^^d\n^^^end."), @r#"
    reserved-name 3:1 "^^^END"
      line 3: `^^^END` is neither an end marker nor a file name (see line 1); write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, after its own `^^^`
    reserved-name 6:1 "^^^end b"
      line 6: `^^^end b` is neither an end marker nor a file name (see line 4); write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, after its own `^^^`
    reserved-name 7:1 "^^^Delete c"
      line 7: `^^^Delete c` is neither an end marker nor a file name; write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, after its own `^^^`
    reserved-name 9:1 "^^^end."
      line 9: `^^^end.` is neither an end marker nor a file name (see line 8); write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, after its own `^^^`
    "#);
    insta::assert_snapshot!(check("^^^end.rs\n^^^end\n^^^deleted\n^^^end\n^^^endless fun.txt\n^^^end\n"), @r#"
    write "end.rs" "" at 0..17
    write "deleted" "" at 17..35
    write "endless fun.txt" "" at 35..61
    "#);
}

#[test]
fn a_bare_fence_in_place_of_an_end_has_its_own_error() {
    insta::assert_snapshot!(check("^^^a\nx\n^^^\n"), @r#"
    bare-end 3:1 "^^^"
      line 3: `^^^` alone does not close the block (see line 1); write `^^^end` on a line of its own after the last line of the content
    "#);
    insta::assert_snapshot!(check("^^^a\n^^^\nx\n}^^^end\n"), @r#"
    glued-end 4:2 "^^^end"
      line 4: `^^^end` is at the end of a line of content (see line 1); write it on its own line
    "#);
}

#[test]
fn the_same_file_twice_is_an_error() {
    insta::assert_snapshot!(check("^^^a\n1\n^^^end\n^^^b\n^^^end\n^^^ a\n^^^delete\n^^^a\n^^^end\n"), @r#"
    duplicate-file 6:5 "a"
      line 6: `a` already has a block (see line 1); give each file once, with its final content
    duplicate-file 8:4 "a"
      line 8: `a` already has a block (see line 1); give each file once, with its final content
    "#);
}

#[test]
fn no_change_together_with_files_is_an_error() {
    insta::assert_snapshot!(check("  $$$start\nok\n$$$end\n^^^a\n^^^end\n"), @r#"
    no-change-with-files 1:3 "$$$start"
      line 1: `$$$start` says that nothing needs to change, but the reply has files (see line 4); leave out either the `$$$` block or the files
    "#);
}

#[test]
fn nothing_actionable_is_an_error() {
    insta::assert_snapshot!(check("&&&start\nI cannot.\n&&&end\n"), @r#"
    nothing-actionable 1:1 ""
      line 1: the reply has neither a file nor `$$$start`; give each changed file as `^^^PATH`, its whole content, `^^^end`; if nothing needs to change, say why between `$$$start` and `$$$end`
    "#);
}

#[test]
fn the_form_that_is_shown_again_is_the_one_that_is_read() {
    let (file, no_change) = code_commit_parser::fence::FORM
        .split_once("If no file")
        .unwrap();
    insta::assert_snapshot!(check(file), @r#"write "path/of/the/file" "the whole new content of the file\n" at 55..116"#);
    insta::assert_snapshot!(check(no_change), @r#"no change "the reason\n""#);
}

#[test]
fn all_errors_are_told_in_order_of_position() {
    insta::assert_snapshot!(
        check("^^^end\nél ^^^a\n^^^\n\té\n  ^^^a\n^^^`b`\n^^^end\n^^^c\n^^^end\n^^^c\n^^^end\n^^^d\nx^^^end"),
        @r#"
    stray-end 1:1 "^^^end"
      line 1: `^^^end` closes nothing; remove it, or open its block before it, at the beginning of a line
    nested 6:1 "^^^`b`"
      line 6: `^^^`b`` is inside another block (see line 5); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    quoted-name 6:1 "^^^`b`"
      line 6: the file name in `^^^`b`` is in quotes or brackets; write the bare path and nothing else on that line
    duplicate-file 10:4 "c"
      line 10: `c` already has a block (see line 8); give each file once, with its final content
    glued-end 13:2 "^^^end"
      line 13: `^^^end` is at the end of a line of content (see line 12); write it on its own line
    "#
    );
}

#[test]
fn an_opening_of_the_same_length_in_a_longer_fence_is_a_warning() {
    insta::assert_snapshot!(check("^^^^a\nx\n^^^^b\ny\n^^^^end\n"), @r#"
    write "a" "x\n^^^^b\ny\n" at 0..24
    warning opening-inside line 3: `^^^^b` is content of the block around it (see line 1); if it should open a block, close the other one before it
    "#);
}

#[test]
fn content_in_a_markdown_fence_is_a_warning() {
    insta::assert_snapshot!(check("^^^a.rs\n```rust\nfn a() {}\n```\n^^^end\n"), @r#"
    write "a.rs" "```rust\nfn a() {}\n```\n" at 0..37
    warning markdown-fence line 1: the whole content of `^^^a.rs` is wrapped in a Markdown fence; leave out the lines of backquotes: they become part of the file
    "#);
    insta::assert_snapshot!(check("^^^a.md\n```rust\n```\n^^^end\n^^^b.rs\n```\n^^^end\n"), @r#"
    write "a.md" "```rust\n```\n" at 0..27
    write "b.rs" "```\n" at 27..46
    "#);
}

#[test]
fn hostile_names_are_quoted_short_and_clean() {
    let text = format!("^^^\u{1b}[31m{}\n^^^end\n", "long".repeat(1000));
    let told = parse(&text).unwrap_err().for_model();
    insta::assert_snapshot!(told, @r"line 1: the file name in `^^^\u{1b}[31mlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong…` has a control character in it; write the bare path and nothing else on that line");
}

#[test]
fn the_model_is_told_ten_errors_and_the_number_of_the_others() {
    let errors = parse(&"^^^end\n".repeat(5000)).map(|_| ()).unwrap_err();
    assert_eq!(
        (errors.iter().count(), errors.total()),
        (code_commit_parser::MOST_KEPT, 5000)
    );
    assert_eq!(errors.for_model().lines().count(), 11);
    assert!(errors.for_model().ends_with("\nand 4990 more"));
    assert_eq!(
        errors.to_string(),
        "line 1: `^^^end` closes nothing, and 4999 more"
    );
}

#[test]
fn the_thoughts_of_a_bad_reply_can_still_be_shown() {
    let text = "&&&start\nhello\n&&&end\n^^^a\nx\n^^^end\n^^^b\n";
    let errors = parse(text).unwrap_err();
    assert_eq!(
        errors
            .salvaged(text, code_commit_parser::fence::Kind::User)
            .collect::<Vec<_>>(),
        ["hello\n"]
    );
    assert_eq!(
        errors
            .salvaged(text, code_commit_parser::fence::Kind::File)
            .collect::<Vec<_>>(),
        ["x\n"]
    );
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_their_place() {
    let errors = code_commit_parser::parse_bytes(b"^^^a\nx\n\xc3\xa9\xff\n^^^end\n").unwrap_err();
    insta::assert_debug_snapshot!(errors.iter().collect::<Vec<_>>(), @r#"
    [
        Diagnostic {
            code: InvalidUtf8,
            span: 9..10,
            line: 3,
            column: 2,
            related: None,
            subject: "",
        },
    ]
    "#);
    assert!(code_commit_parser::parse_bytes(b"^^^a\n\xc3\xa9\n^^^end").is_ok());
    assert_eq!(
        code_commit_parser::parse_bytes(b"^^^a\n\xc3")
            .unwrap_err()
            .iter()
            .next()
            .unwrap()
            .span,
        5..6
    );
}

#[test]
fn codes_are_kebab_case_and_unique() {
    let mut codes: Vec<_> = code_commit_parser::ErrorCode::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    codes.extend(
        code_commit_parser::WarningCode::ALL
            .iter()
            .map(|code| code.as_str()),
    );
    assert!(codes.iter().all(|code| {
        code.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }));
    let count = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), count);
}

/// Each of these would take hours if any part of the text were looked at again for each marker.
#[test]
fn hostile_shapes_are_read_in_one_pass() {
    const SIZE: usize = 400_000;
    let fill = |piece: &str| piece.repeat(SIZE / piece.len());
    let growing: String = (4..1000).map(|length| "^".repeat(length) + "a\n").collect();
    let shapes = [
        fill("^^^\n"),
        fill("^^^a\n"),
        fill("^^^^a\n^^^end\n"),
        fill("x^^^ "),
        fill("x^^^end "),
        fill("x^^^end   ") + &" ".repeat(SIZE),
        fill("&&& "),
        fill(" ") + "&&&start",
        fill(" \n") + "^^^a\n^^^end",
        "^^^a\n^^^delete\n".to_owned() + &fill(" ") + "x\n" + &fill("^^^end\n"),
        "^^^a\n".to_owned() + &fill(" \n") + &fill("^^^\n") + &fill("^^^delete\n"),
        "^^^a\n".to_owned() + &fill("%%%end\n"),
        fill("  ^^^ a b\n") + &fill("^^^end\n"),
        "%%%start\n".to_owned() + &fill("^^^a\n") + &fill("^^^end\n"),
        "^^^a".to_owned() + &fill(" #b.c") + &fill(" -b") + &fill("  ") + ".d\n",
        "^^^ ".to_owned() + &fill("^ "),
        fill("&&&start x\n") + &fill("&&&end x\n"),
        fill("^^^a\n^^^end\n"),
        fill("$$$start\n$$$end\n") + "^^^a\n^^^end\n",
        fill("^"),
        fill("&"),
        fill("^^^\u{3000}"),
        growing,
    ];
    for shape in shapes {
        let told = parse(&shape).map_or_else(
            |errors| errors.for_model().len(),
            |reply| reply.blocks().len(),
        );
        assert!(told < 20_000);
    }
}

#[test]
fn a_token_that_ends_a_turn_ends_a_block_only_at_the_end_of_a_stream() {
    let (mut openers, text) = (
        code_commit_parser::partial::Openers::default(),
        "^^^end</s>\n",
    );
    assert!(openers.read(text).is_empty());
    assert_eq!(openers.read(&format!("{text}\na\n")), ["end</s>"]);
}

#[test]
fn a_growing_text_is_read_by_the_same_rules() {
    let mut openers = code_commit_parser::partial::Openers::default();
    let text = "^^^a\n\u{feff}^^^no\n^^^end\n\u{feff}^^^no\n&&&start\n&&&end\n^^^^b\n^^^no\n^^^^end\n^^^`no`\n^^^c\n^^^d\n^^^no";
    let ends = text.char_indices().map(|(end, _)| end).chain([text.len()]);
    let seen: Vec<&str> = ends
        .filter_map(|end| text.get(..end))
        .flat_map(|head| openers.read(head))
        .collect();
    assert_eq!(seen, ["a", "b", "c", "d"]);
    assert!(openers.read(text).is_empty());
}

/// What is read of `text`, or its errors with their lines.
fn read(text: &str) -> String {
    let codes = |errors: code_commit_parser::Errors| {
        errors
            .iter()
            .map(|error| format!("{} {}", error.code, error.line))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let said = |reply: code_commit_parser::Reply<'_>| {
        let said: Vec<&str> = reply
            .user()
            .chain(reply.debug())
            .chain(reply.no_change())
            .collect();
        format!("{} files, {said:?}", reply.files().count())
    };
    parse(text).map_or_else(codes, said)
}

#[test]
fn the_form_of_a_thought_is_no_reason_to_refuse_a_change() {
    let file = "^^^a\nx\n^^^end\n";
    for fence in ["&&&", "%%%", "&&&&&"] {
        for (thought, said) in [
            ("SSSstart text SSSend\n", "text"),
            ("SSSstart: text SSSend\n", ": text"),
            ("SSSstartText SSSend\n", "Text"),
            ("SSSstartSSSend\n", ""),
            ("  SSS START text SSS End \n", "text"),
            ("SSSstart text\nmore\nSSSend\n", "text\nmore\n"),
            ("SSSstart\ntext SSSend\n", "text "),
            ("SSSStart\ntext\nSSSEND\n", "text\n"),
            ("SSSstart\ntext\nSSSend.\n", "text\n"),
            ("SSSstart\ntext\nSSSend of it\n", "text\n"),
            (
                "SSSstart\nends with SSSend\nmore SSSend\nSSSend\n",
                "ends with SSSend\nmore SSSend\n",
            ),
            (
                "SSSstart text SSSend\nmore\nSSSend\n",
                "text SSSend\nmore\n",
            ),
        ] {
            let thought = thought.replace("SSS", fence);
            let said = format!("1 files, {:?}", [said.replace("SSS", fence)]);
            assert_eq!(read(&format!("{thought}{file}")), said, "{thought}");
            assert_eq!(read(&format!("{file}\n{thought}")), said, "{thought}");
        }
    }
    let two = "&&&start one &&&end\n&&&start two &&&end\n";
    assert_eq!(read(&[two, file].concat()), r#"1 files, ["one", "two"]"#);
    assert_eq!(
        read("$$$start all is well $$$end\n"),
        r#"0 files, ["all is well"]"#
    );
    assert_eq!(
        read(&format!("$$$START all is well $$$END\n{file}")),
        "no-change-with-files 1"
    );
}

#[test]
fn a_fence_that_overlaps_a_thought_is_an_error() {
    let file = "^^^a\nx\n^^^end\n";
    for (text, codes) in [
        ("&&&start text &&&\n", "text-after-marker 1"),
        ("&&&start text ^^^b\n", "text-after-marker 1"),
        ("&&&start text %%%end\n", "text-after-marker 1"),
        (
            "&&&start one &&&end &&&start two &&&end\n",
            "text-after-marker 1",
        ),
        ("&&&start one ^^^b &&&end\n", "text-after-marker 1"),
        ("&&&end text\n", "stray-end 1"),
        ("&&&start\ntext\n&&&end ^^^b\n", "text-after-marker 3"),
        (
            "&&&start\n%%%start text %%%end\n&&&end\n",
            "text-after-marker 2",
        ),
        ("&&&start text\n", "nested 2"),
        ("&&&start\n&&&start text\n&&&end\n", "nested 2"),
        ("&&&END\n", "stray-end 1"),
    ] {
        assert_eq!(read(&format!("{text}{file}")), codes, "{text}");
    }
    assert_eq!(
        read("^^^a\n&&&start text &&&end\n^^^end\n"),
        "text-after-marker 2"
    );
    assert_eq!(
        read("^^^a\n&&&START\n%%%END OF THE MACROS\n^^^end\n"),
        "1 files, []"
    );
    assert_eq!(read(&format!("{file}&&&start text\n")), "unterminated 4");
    insta::assert_snapshot!(check("&&&start Done. ^^^b\n^^^a\n^^^end\n"), @r#"
    text-after-marker 1:1 "&&&start Done. ^^^b"
      line 1: `&&&start Done. ^^^b` has text on the line of a marker; write `&&&start` and `&&&end` each alone on a line, with the text between them; if this line is content, give the block around it a longer fence
    "#);
    insta::assert_snapshot!(check("&&&&start\nDone.\n&&&&end &&&\n^^^a\n^^^end\n"), @r#"
    text-after-marker 3:1 "&&&&end &&&"
      line 3: `&&&&end &&&` has text on the line of a marker (see line 1); write `&&&&start` and `&&&&end` each alone on a line, with the text between them; if this line is content, give the block around it a longer fence
    "#);
}

#[test]
fn thoughts_between_tags_are_kept_and_hold_no_files() {
    let thinking = |text: &str| -> String {
        let reply = parse(text).unwrap_or_else(|errors| panic!("{text}: {errors}"));
        let warnings: Vec<String> = reply
            .warnings()
            .iter()
            .map(|warning| format!("{} {}", warning.code, warning.line))
            .collect();
        let files: Vec<&str> = reply.files().map(|file| file.path).collect();
        format!(
            "{:?} {files:?} {}",
            reply.thinking().collect::<Vec<_>>(),
            warnings.join(", ")
        )
        .trim_end()
        .to_owned()
    };
    for (text, expected) in [
        (
            "<think>\nhm\n</think>\n\n^^^a\n^^^end\n",
            r#"["\nhm\n"] ["a"]"#,
        ),
        ("\u{feff}<think>hm</think>^^^a\n^^^end\n", r#"["hm"] ["a"]"#),
        (
            "^^^a\n^^^end\n  <reasoning>one</reasoning>\n^^^b\n^^^end\n<think>two",
            r#"["one", "two"] ["a", "b"]"#,
        ),
        (
            "<think>\n^^^no\n^^^ end\n&&&start\n</think>\n^^^a\n^^^end\n",
            r#"["\n^^^no\n^^^ end\n&&&start\n"] ["a"] ignored-fence 2"#,
        ),
        ("hm\n</think>\n^^^a\n^^^end\n", r#"["hm\n"] ["a"]"#),
        (
            "^^^no\n^^^end\n^^^end\n</think>^^^a\n^^^end\n</think>\n",
            r#"["^^^no\n^^^end\n^^^end\n"] ["a"] ignored-fence 1"#,
        ),
        (
            "[THINK]<think>[/THINK]</think>\n^^^a\n^^^end\n",
            r#"["<think>"] ["a"]"#,
        ),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>^^^a\n^^^end<|return|>",
            r#"["hm<|end|><|start|>assistant"] ["a"]"#,
        ),
        // A tag behind text or inside a block is none.
        ("It begins with <think>\n^^^a\n^^^end\n", r#"[] ["a"]"#),
        ("^^^a\n<think>\n</think>\n^^^end\n", r#"[] ["a"]"#),
        ("^^^a\n</think>^^^end\n^^^end\n", r#"[] ["a"]"#),
        ("&&&start\n<think>\n&&&end\n^^^a\n^^^end\n", r#"[] ["a"]"#),
        (
            "^^^a\n^^^end\nThe tag was </think> before.\n",
            r#"[] ["a"]"#,
        ),
        (
            "Each ends with ^^^end\n^^^a\n^^^end\n",
            r#"[] ["a"] ignored-fence 1"#,
        ),
    ] {
        assert_eq!(thinking(text), expected, "{text}");
    }
    assert_eq!(read("<think>hm\n^^^a\nx\n^^^end\n"), "in-thought 2");
    assert_eq!(
        read("<think>\n$$$start\n$$$end\n</think>\nDone."),
        "in-thought 2"
    );
    assert_eq!(read("<think>hm</think>\nDone."), "nothing-actionable 1");
    assert_eq!(
        read("^^^a\n^^^end\nThat is all. </think>\n^^^b\n^^^end\n"),
        "in-thought 1"
    );
    insta::assert_snapshot!(check("^^^a\nx\n^^^end\n</think>\n"), @r#"
    in-thought 1:1 "^^^a"
      line 1: `^^^a` is in a thought between tags, where no fence counts (see line 4); end the thought with its tag, and write all blocks after it
    "#);
    insta::assert_snapshot!(check("<think>\n^^^b\n</think>\n^^^a\n^^^end\n"), @r#"
    write "a" "" at 22..34
    thinking "\n^^^b\n"
    warning ignored-fence line 2: `^^^b` is in a thought or behind text, where no fence counts (see line 1); write the fences of a block on lines of their own, outside thoughts
    "#);
}

#[test]
fn a_longer_word_than_start_or_end_is_content_of_a_block() {
    insta::assert_snapshot!(check("^^^a.erl\n%%% starts the server\n%%%endless\n&&&started\n$$$end_of_life\n^^^end\n"), @r#"write "a.erl" "%%% starts the server\n%%%endless\n&&&started\n$$$end_of_life\n" at 0..75"#);
}

#[test]
fn carets_alone_are_prose_outside_of_blocks_and_content_inside() {
    insta::assert_snapshot!(check("^^^\nThe line above is a rule.\n^^^^^\n  ^^^ ^^^^\n^^^a\n^^^\n^^^ ^^^\n^^^end\n^^^\n"), @r#"write "a" "^^^\n^^^ ^^^\n" at 47..71"#);
}

#[test]
fn an_indented_underline_with_words_is_prose_outside_of_blocks() {
    insta::assert_snapshot!(
        check("It fails:\n    let x = 1\n         ^^^ expected one of `;`\n\t^^^^^^ help: end it\n  ^^^^ end of input\n^^^a\n1;\n^^^end\n"),
        @r#"write "a" "1;\n" at 98..113"#
    );
    // Inside of a block of carets the same line of three is an error, as any opening: the file's end may have been forgotten.
    insta::assert_snapshot!(check("^^^a\n    ^^^ expected one of `;`\n^^^end\n"), @r#"
    nested 2:5 "^^^ expected one of `;`"
      line 2: `^^^ expected one of `;`` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
}

#[test]
fn carets_with_one_word_always_open_a_block_and_so_do_those_at_the_beginning_of_a_line() {
    for half in [
        "  ^^^^ help\n",
        "^^^^^ expected this\n",
        "\t^^^a.rs\nx\n",
        "^^^ my file.rs\nx\n",
    ] {
        let text = format!("^^^b\ny\n^^^end\n{half}");
        let codes: Vec<_> = parse(&text)
            .unwrap_err()
            .iter()
            .map(|error| error.code)
            .collect();
        assert_eq!(
            codes,
            [code_commit_parser::ErrorCode::Unterminated],
            "{half}"
        );
    }
}

#[test]
fn an_end_whose_block_was_taken_for_prose_names_the_line_that_opened_none() {
    insta::assert_snapshot!(check("^^^b\n^^^end\n  ^^^my file.rs\nx\n  ^^^end\n"), @r#"
    stray-end 5:3 "^^^end"
      line 5: `^^^end` closes nothing (see line 3); remove it, or open its block before it, at the beginning of a line
    "#);
    insta::assert_snapshot!(check("  ^^^my file.rs\n  ^^^delete\n^^^b\n^^^end\n"), @r#"
    stray-delete 2:3 "^^^delete"
      line 2: `^^^delete` has no file name before it (see line 1); write `^^^PATH` at the beginning of the line before it
    "#);
    insta::assert_snapshot!(check("  ^^^delete my file.rs\n^^^b\n^^^end\n"), @r#"
    reserved-name 1:3 "^^^delete my file.rs"
      line 1: `^^^delete my file.rs` is neither an end marker nor a file name; write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, after its own `^^^`
    "#);
    // Only a bare fence of the end's own length was meant as its opening.
    insta::assert_snapshot!(check("^^^^^^\nx\n^^^\nsrc/a.rs\n^^^end\n"), @r#"
    missing-name 3:1 "^^^"
      line 3: `^^^` has no file name; write the path after the fence, as in `^^^src/main.rs`
    "#);
    insta::assert_snapshot!(check("^^^^^^\nx\n^^^end\n"), @r#"
    stray-end 3:1 "^^^end"
      line 3: `^^^end` closes nothing; remove it, or open its block before it, at the beginning of a line
    "#);
    insta::assert_snapshot!(check("^^^\nx\n^^^a\n^^^end\n^^^end\n"), @r#"
    stray-end 5:1 "^^^end"
      line 5: `^^^end` closes nothing; remove it, or open its block before it, at the beginning of a line
    "#);
}

#[test]
fn caret_lines_between_thought_markers_are_content_but_for_end_and_delete() {
    insta::assert_snapshot!(
        check("%%%start\n^^^ expected `u32`\n^^^src/a.rs\n^^^end.\n^^^\n^^^^end\n^^^start\n%%%end\n&&&start\n^^^b\n&&&end\n^^^a\n^^^end\n"),
        @r#"
    write "a" "" at 97..109
    user "^^^b\n"
    debug "^^^ expected `u32`\n^^^src/a.rs\n^^^end.\n^^^\n^^^^end\n^^^start\n"
    "#
    );
    // A file inside of a thought, or behind one whose end was forgotten: the opening is what stands in the wrong place.
    insta::assert_snapshot!(check("%%%start\nnote\n^^^a\nx\n^^^end\n"), @r#"
    nested 3:1 "^^^a"
      line 3: `^^^a` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("%%%start\nnote\n^^^a\nx\n^^^end\n%%%end\n^^^b\n^^^delete\n"), @r#"
    nested 3:1 "^^^a"
      line 3: `^^^a` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("%%%start\n^^^a\n%%%end\nx\n^^^end\n"), @r#"
    nested 2:1 "^^^a"
      line 2: `^^^a` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("&&&start\nnote\n^^^a\n^^^delete\n&&&end\n"), @r#"
    nested 3:1 "^^^a"
      line 3: `^^^a` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
}

#[test]
fn start_is_no_files_name() {
    insta::assert_snapshot!(check("^^^start\nx\n^^^end\n"), @r#"
    named-start 1:1 "^^^start"
      line 1: `^^^start` has no file name: `start` belongs to the other fences; write the path of the file in place of `start`
    "#);
    insta::assert_snapshot!(check("^^^Start\n^^^end\n^^^starting.md\n^^^end\n"), @r#"
    write "Start" "" at 0..16
    write "starting.md" "" at 16..38
    "#);
}

#[test]
fn a_name_with_a_remark_is_refused_with_the_name_that_was_probably_meant() {
    insta::assert_snapshot!(check("^^^a.rs (new file)\nx\n^^^end\n^^^b.rs  # new\n^^^end\n"), @r#"
    remark-in-name 1:1 "^^^a.rs (new file)"
      line 1: `^^^a.rs (new file)` has more than a file name on its line; write `^^^a.rs` and nothing else on that line
    remark-in-name 4:1 "^^^b.rs  # new"
      line 4: `^^^b.rs  # new` has more than a file name on its line; write `^^^b.rs` and nothing else on that line
    "#);
    let told = |line: &str| {
        let told = parse(&format!("{line}\n^^^end\n"))
            .map_or_else(|errors| errors.for_model(), |_| String::new());
        told.split_once("; write `")
            .and_then(|(_, rest)| rest.split_once('`'))
            .map(|(meant, _)| meant.to_owned())
    };
    for (line, meant) in [
        ("^^^Makefile (new)", "^^^Makefile"),
        ("^^^^src/my file.rs  (updated)", "^^^^src/my file.rs"),
        ("^^^Makefile # changed", "^^^Makefile"),
        ("^^^a.rs // as in v1.2", "^^^a.rs"),
        ("^^^a.rs - new file", "^^^a.rs"),
        ("^^^a.rs \u{2014} rewritten", "^^^a.rs"),
        ("^^^a.rs ^^^end", "^^^a.rs"),
        ("^^^edit edit src/a.rs", "^^^edit src/a.rs"),
    ] {
        assert_eq!(told(line).as_deref(), Some(meant), "{line}");
    }
    for name in [
        "Report (1).txt",
        "app/(shop)/my page.tsx",
        "Artist - Song.mp3",
        "docs/v1.2 - notes.md",
        "Issue #5.md",
        "edit.rs",
        "editor config.toml",
        "a b.rs",
    ] {
        assert_eq!(told(&format!("^^^{name}")), None, "{name}");
    }
}

#[test]
fn a_word_for_an_operation_beside_a_name_makes_no_file_and_is_told_the_right_form() {
    insta::assert_snapshot!(check("^^^remove x\n^^^rename a b\n^^^end\n^^^create src/a.rs\nx\n^^^end\n^^^x delete\n"), @r#"
    remark-in-name 1:1 "^^^remove x"
      line 1: `^^^remove x` has more than a file name on its line; write `^^^x`, and `^^^delete` on the next line
    remark-in-name 2:1 "^^^rename a b"
      line 2: `^^^rename a b` has more than a file name on its line; write the new file with its whole content as `^^^PATH` to `^^^end`; to delete the old one, write `^^^PATH`, and `^^^delete` on the next line
    remark-in-name 4:1 "^^^create src/a.rs"
      line 4: `^^^create src/a.rs` has more than a file name on its line; write `^^^src/a.rs`, the whole content, `^^^end`
    remark-in-name 7:1 "^^^x delete"
      line 7: `^^^x delete` has more than a file name on its line; write `^^^x`, and `^^^delete` on the next line
    "#);
    let told = |name: &str| {
        let reply = format!("^^^{name}\nx\n^^^end\n^^^good\n^^^end\n");
        parse(&reply).map_or_else(|errors| errors.for_model(), |_| "taken".to_owned())
    };
    let right = |form: &str| format!("has more than a file name on its line; write {form}");
    for name in [
        "create x",
        "Create: x",
        "need x",
        "PATH: x",
        "update x",
        "x new",
    ] {
        assert!(
            told(name).ends_with(&right("`^^^x`, the whole content, `^^^end`")),
            "{}",
            told(name)
        );
    }
    for name in ["Remove x", "unlink x", "x delete", "x rm"] {
        assert!(
            told(name).ends_with(&right("`^^^x`, and `^^^delete` on the next line")),
            "{}",
            told(name)
        );
    }
    for name in ["rename a b", "move a -> b", "mv a b", "copy a b", "cp a b"] {
        assert!(told(name).contains(&right(
            "the new file with its whole content as `^^^PATH` to `^^^end`; to delete"
        )));
    }
    assert!(
        told("x edit").ends_with(&right("`^^^edit x`")),
        "{}",
        told("x edit")
    );
    for name in [
        "new",
        "remove.rs",
        "rename/a b",
        "a new b",
        "paths x",
        "move:",
    ] {
        assert_eq!(told(name), "taken", "{name}");
    }
}
