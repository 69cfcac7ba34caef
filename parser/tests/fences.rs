//! The grammar of S0 and S1, each rule and each error.

mod show;

use parser::parse;
use show::check;

#[test]
fn a_file_is_the_bytes_between_its_markers() {
    insta::assert_snapshot!(check("Here:\n^^^src/a.rs\nfn a() {}\n\n^^^end\nDone."), @r#"write "src/a.rs" "fn a() {}\n\n" at 6..36"#);
}

#[test]
fn a_file_may_be_empty() {
    insta::assert_snapshot!(check("^^^a\n^^^end"), @r#"write "a" "" at 0..11"#);
}

#[test]
fn line_ends_and_byte_order_marks_of_content_are_kept() {
    insta::assert_snapshot!(check("\u{feff}^^^a\r\n\u{feff}x\r\ny\n\t\r\n^^^end\r\n"), @r#"write "a" "\u{feff}x\r\ny\n\t\r\n" at 3..28"#);
}

#[test]
fn blanks_around_a_marker_and_its_word_are_tolerated() {
    insta::assert_snapshot!(check(" \t^^^  src/a b.rs \t\nx\n\u{a0}^^^ end  \n   $ $$\n"), @r#"write "src/a b.rs" "x\n" at 0..34"#);
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
fn no_change_stands_alone() {
    insta::assert_snapshot!(check("$$$start\nAll is well.\n$$$end\n&&&start\nFine.\n&&&end\n"), @r#"
    user "Fine.\n"
    no change "All is well.\n"
    "#);
}

#[test]
fn a_marker_in_the_middle_of_a_line_is_content() {
    insta::assert_snapshot!(check("^^^a\nlet x = \"^^^b\";\n// &&&start\n^^^end\nwrite ^^^c there"), @r#"write "a" "let x = \"^^^b\";\n// &&&start\n" at 0..40"#);
}

#[test]
fn underlines_and_bare_carets_are_content() {
    insta::assert_snapshot!(check("^^^a\n^^^\n  ^^^^^^ expected `;`\n^^^^\n&&&\n&&&started\n^^^end\n^^^^^^^^\n"), @r#"write "a" "^^^\n  ^^^^^^ expected `;`\n^^^^\n&&&\n&&&started\n" at 0..58"#);
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
    insta::assert_snapshot!(check("^^^a\nx\n"), @r#"
    unterminated 1:1 "^^^a"
      line 1: the block of `^^^a` is never closed; write `^^^end` on a line of its own after the last line of the content
    "#);
    insta::assert_snapshot!(check("^^^a\n^^^end\n\n&&&start\nx"), @r#"
    unterminated 4:1 "&&&start"
      line 4: the block of `&&&start` is never closed; write `&&&end` on a line of its own after the last line of the content
    "#);
    insta::assert_snapshot!(check("^^^^a\nx\n&&&start\n"), @r#"
    unterminated 1:1 "^^^^a"
      line 1: the block of `^^^^a` is never closed; write `^^^^end` on a line of its own after the last line of the content
    "#);
}

#[test]
fn an_opening_inside_a_block_is_one_error_whatever_was_meant() {
    insta::assert_snapshot!(check("^^^a\nx\n^^^b\ny\n^^^end\n"), @r#"
    nested 3:1 "^^^b"
      line 3: `^^^b` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("^^^a\n^^^b\ny\n^^^end\n^^^end\n"), @r#"
    nested 2:1 "^^^b"
      line 2: `^^^b` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("^^^a\n&&&start\n^^^end\n&&&end\n"), @r#"
    nested 2:1 "&&&start"
      line 2: `&&&start` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("^^^a\n%%%start\n%%%end\n^^^end\n"), @r#"
    nested 2:1 "%%%start"
      line 2: `%%%start` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("&&&start\n^^^a\n^^^end\n&&&end\n"), @r#"
    nested 2:1 "^^^a"
      line 2: `^^^a` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("&&&start\n&&&start\n&&&end\n"), @r#"
    nested 2:1 "&&&start"
      line 2: `&&&start` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
}

#[test]
fn an_end_without_its_opening_is_an_error() {
    insta::assert_snapshot!(check("^^^end\n^^^a\n^^^end\n&&&end\n^^^^end"), @r#"
    stray-end 1:1 "^^^end"
      line 1: `^^^end` closes nothing; remove it, or open its block before it
    stray-end 4:1 "&&&end"
      line 4: `&&&end` closes nothing; remove it, or open its block before it
    stray-end 5:1 "^^^^end"
      line 5: `^^^^end` closes nothing; remove it, or open its block before it
    "#);
    insta::assert_snapshot!(check("^^^a\n%%%end\n^^^end\n"), @r#"
    nested 2:1 "%%%end"
      line 2: `%%%end` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
    insta::assert_snapshot!(check("&&&start\n^^^end\n^^^delete\n&&&end\n$$$start\n$$$end\n"), @r#"
    nested 2:1 "^^^end"
      line 2: `^^^end` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    nested 3:1 "^^^delete"
      line 3: `^^^delete` stands inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    "#);
}

#[test]
fn a_delete_without_a_name_is_an_error() {
    insta::assert_snapshot!(check("^^^delete\n"), @r#"
    stray-delete 1:1 "^^^delete"
      line 1: `^^^delete` has no file name before it; write `^^^PATH` on the line before it
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
      line 4: `^^^end` closes nothing; remove it, or open its block before it
    "#);
}

#[test]
fn content_before_a_delete_is_an_error() {
    insta::assert_snapshot!(check("^^^a\nold\n^^^delete\n"), @r#"
    content-before-delete 3:1 "^^^delete"
      line 3: the file that is to be deleted has content too (see line 1); write `^^^delete` right after `^^^PATH`, or `^^^end` to replace the file
    "#);
}

#[test]
fn a_fence_without_a_name_is_an_error() {
    insta::assert_snapshot!(check("^^^\nx\n^^^end\n"), @r#"
    missing-name 1:1 "^^^"
      line 1: `^^^` has no file name; write the path behind the fence, as in `^^^src/main.rs`
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
    insta::assert_snapshot!(check("^^^a\nx\n}^^^end\n"), @r#"
    glued-end 3:2 "^^^end"
      line 3: `^^^end` stands at the end of a line of content (see line 1); write it on a line of its own
    "#);
    insta::assert_snapshot!(check("^^^a\n}^^^end \r\nmore\n^^^b\ny\n^^^end\n"), @r#"
    glued-end 2:2 "^^^end"
      line 2: `^^^end` stands at the end of a line of content (see line 1); write it on a line of its own
    "#);
    insta::assert_snapshot!(check("%%%start\nnote %%%end\n^^^a\n^^^end\n"), @r#"
    glued-end 2:6 "%%%end"
      line 2: `%%%end` stands at the end of a line of content (see line 1); write it on a line of its own
    "#);
}

#[test]
fn an_end_of_another_length_has_its_own_error() {
    insta::assert_snapshot!(check("^^^^a\nx\n^^^end\n"), @r#"
    end-length 3:1 "^^^end"
      line 3: `^^^end` has not the length of the fence it should close (see line 1); close a block with exactly as many characters as opened it
    "#);
    insta::assert_snapshot!(check("^^^a\nx\n^^^^end\n^^^b\n^^^end\n"), @r#"
    end-length 3:1 "^^^^end"
      line 3: `^^^^end` has not the length of the fence it should close (see line 1); close a block with exactly as many characters as opened it
    "#);
}

#[test]
fn a_word_with_something_around_it_has_its_own_error() {
    insta::assert_snapshot!(check("^^^a\nx\n^^^END\n^^^b\ny\n^^^end b\n^^^Delete c\n^^^d\n^^^end."), @r#"
    reserved-name 3:1 "^^^END"
      line 3: `^^^END` is neither an end nor a file's name (see line 1); write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, behind its own `^^^`
    reserved-name 6:1 "^^^end b"
      line 6: `^^^end b` is neither an end nor a file's name (see line 4); write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, behind its own `^^^`
    reserved-name 7:1 "^^^Delete c"
      line 7: `^^^Delete c` is neither an end nor a file's name; write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, behind its own `^^^`
    reserved-name 9:1 "^^^end."
      line 9: `^^^end.` is neither an end nor a file's name (see line 8); write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, behind its own `^^^`
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
      line 4: `^^^end` stands at the end of a line of content (see line 1); write it on a line of its own
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
      line 1: `$$$start` says that nothing needs to change, yet files are given (see line 4); leave out either the `$$$` block or the files
    "#);
}

#[test]
fn nothing_actionable_is_an_error() {
    insta::assert_snapshot!(check(""), @r#"
    nothing-actionable 1:1 ""
      line 1: the reply has no file and no `$$$start`; give each changed file as `^^^PATH`, its whole content, `^^^end`; if nothing needs to change, say why between `$$$start` and `$$$end`
    "#);
    insta::assert_snapshot!(check("&&&start\nI cannot.\n&&&end\n"), @r#"
    nothing-actionable 1:1 ""
      line 1: the reply has no file and no `$$$start`; give each changed file as `^^^PATH`, its whole content, `^^^end`; if nothing needs to change, say why between `$$$start` and `$$$end`
    "#);
}

#[test]
fn all_errors_are_told_in_order_of_position() {
    insta::assert_snapshot!(
        check("^^^end\nél ^^^a\n^^^\n\té\n  ^^^a\n^^^`b`\n^^^end\n^^^c\n^^^end\n^^^c\n^^^end\n$$$start\nx$$$end"),
        @r#"
    stray-end 1:1 "^^^end"
      line 1: `^^^end` closes nothing; remove it, or open its block before it
    missing-name 3:1 "^^^"
      line 3: `^^^` has no file name; write the path behind the fence, as in `^^^src/main.rs`
    nested 6:1 "^^^`b`"
      line 6: `^^^`b`` stands inside another block (see line 5); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    quoted-name 6:1 "^^^`b`"
      line 6: the file name in `^^^`b`` is in quotes or brackets; write the bare path and nothing else on that line
    duplicate-file 10:4 "c"
      line 10: `c` already has a block (see line 8); give each file once, with its final content
    glued-end 13:2 "$$$end"
      line 13: `$$$end` stands at the end of a line of content (see line 12); write it on a line of its own
    "#
    );
}

#[test]
fn an_opening_of_the_same_length_in_a_longer_fence_is_a_warning() {
    insta::assert_snapshot!(check("^^^^a\nx\n^^^^b\ny\n^^^^end\n"), @r#"
    write "a" "x\n^^^^b\ny\n" at 0..24
    warning opening-inside line 3: `^^^^b` is content of the block around it (see line 1); if it is to open a block, close the other one before it
    "#);
}

#[test]
fn content_in_a_markdown_fence_is_a_warning() {
    insta::assert_snapshot!(check("^^^a.rs\n```rust\nfn a() {}\n```\n^^^end\n"), @r#"
    write "a.rs" "```rust\nfn a() {}\n```\n" at 0..37
    warning markdown-fence line 1: the whole content of `^^^a.rs` stands in a Markdown fence; leave out the lines of backquotes: they become part of the file
    "#);
    insta::assert_snapshot!(check("^^^a.md\n```rust\n```\n^^^end\n^^^b.rs\n```\n^^^end\n"), @r#"
    write "a.md" "```rust\n```\n" at 0..27
    write "b.rs" "```\n" at 27..46
    "#);
}

#[test]
fn markdown_fences_outside_blocks_are_prose() {
    insta::assert_snapshot!(check("```\n^^^a\nx\n^^^end\n```\n"), @r#"write "a" "x\n" at 4..18"#);
}

#[test]
fn a_file_named_start_is_a_warning() {
    insta::assert_snapshot!(check("^^^start\nx\n^^^end\n"), @r#"
    write "start" "x\n" at 0..18
    warning named-start line 1: `^^^start` names a file `start`; write the path of the file in place of `start`
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
    assert_eq!((errors.iter().count(), errors.total()), (parser::MOST_KEPT, 5000));
    assert_eq!(errors.for_model().lines().count(), 11);
    assert!(errors.for_model().ends_with("\nand 4990 more"));
    assert_eq!(errors.to_string(), "line 1: `^^^end` closes nothing, and 4999 more");
}

#[test]
fn the_thoughts_of_a_bad_reply_can_still_be_shown() {
    let text = "&&&start\nhello\n&&&end\n^^^a\nx\n^^^end\n^^^b\n";
    let errors = parse(text).unwrap_err();
    assert_eq!(errors.salvaged(text, parser::fence::Kind::User).collect::<Vec<_>>(), ["hello\n"]);
    assert_eq!(errors.salvaged(text, parser::fence::Kind::File).collect::<Vec<_>>(), ["x\n"]);
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_their_place() {
    let errors = parser::parse_bytes(b"^^^a\nx\n\xc3\xa9\xff\n^^^end\n").unwrap_err();
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
    assert!(parser::parse_bytes(b"^^^a\n\xc3\xa9\n^^^end").is_ok());
    assert_eq!(parser::parse_bytes(b"^^^a\n\xc3").unwrap_err().iter().next().unwrap().span, 5..6);
}

#[test]
fn codes_are_kebab_case_and_unique() {
    let mut codes: Vec<_> = parser::ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    codes.extend(parser::WarningCode::ALL.iter().map(|code| code.as_str()));
    assert!(
        codes
            .iter()
            .all(|code| code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'))
    );
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
        fill("^^^a\n^^^end\n"),
        fill("$$$start\n$$$end\n") + "^^^a\n^^^end\n",
        fill("^"),
        fill("&"),
        fill("^^^\u{3000}"),
        growing,
    ];
    for shape in shapes {
        let told = parse(&shape).map_or_else(|errors| errors.for_model().len(), |reply| reply.blocks().len());
        assert!(told < 20_000);
    }
}

#[test]
fn a_fence_is_as_long_as_its_content_needs() {
    let length = |content| parser::fence::length_for(parser::fence::Kind::File, content);
    assert_eq!(length("x ^^^end\n^^^\n^^^^^^\n^^^^end\n"), 3);
    assert_eq!(length("^^^end\n"), 4);
    assert_eq!(length("&&&start\n"), 4);
    assert_eq!(length("^^^a\n^^^^^end\n  ^^^^ delete\n^^^^a\n"), 6);
    assert_eq!(length("^^^a\n^^^^END\n"), 5);
    assert_eq!(length("^^^a\n&&&&end\n"), 4);
}

#[test]
fn what_would_not_be_read_back_is_not_printed() {
    use parser::fence::{Draft, NameFault, Unprintable, print};
    let write = |path, content| print([Draft::Write { path, content }]);
    assert_eq!(write("a", "x"), Err(Unprintable::NoFinalNewline));
    for (name, fault) in [
        ("", NameFault::Empty),
        (" ", NameFault::Empty),
        (" a", NameFault::Reserved),
        ("^a", NameFault::Reserved),
        ("end", NameFault::Reserved),
        ("DELETE x", NameFault::Reserved),
        ("a\nb", NameFault::Control),
        ("`a`", NameFault::Quoted),
    ] {
        assert_eq!(write(name, ""), Err(Unprintable::Name(fault)), "{name:?}");
    }
    insta::assert_snapshot!(write("a b", "^^^end\n").unwrap(), @"
    ^^^^a b
    ^^^end
    ^^^^end
    ");
}

#[test]
fn a_growing_text_is_read_by_the_same_rules() {
    let mut openers = parser::partial::Openers::default();
    let text = "^^^a\n\u{feff}^^^no\n^^^end\n\u{feff}^^^no\n&&&start\n&&&end\n^^^^b\n^^^no\n^^^^end\n^^^`no`\n^^^c\n^^^d\n^^^no";
    let ends = text.char_indices().map(|(end, _)| end).chain([text.len()]);
    let seen: Vec<&str> =
        ends.filter_map(|end| text.get(..end)).flat_map(|head| openers.read(head)).collect();
    assert_eq!(seen, ["a", "b", "c", "d"]);
    assert!(openers.read(text).is_empty());
}
