//! Edit blocks: each rule of their grammar.

use crate::show::check;

const HUNK: &str = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n";

fn block(content: &str) -> String {
    format!("^^^edit src/a.rs\n{content}^^^end\n")
}

#[test]
fn a_block_has_one_hunk_or_more_with_blank_lines_around_them() {
    insta::assert_snapshot!(check(&block(HUNK)), @r#"edit "src/a.rs" [Hunk { search: "old\n", replace: "new\n" }] at 0..71"#);
    let removes = "<<<<<<< SEARCH\na\nb\n=======\n>>>>>>> REPLACE\n";
    insta::assert_snapshot!(check(&block(&format!("\n{HUNK}\n \n{removes}\n"))), @r#"edit "src/a.rs" [Hunk { search: "old\n", replace: "new\n" }, Hunk { search: "a\nb\n", replace: "" }] at 0..119"#);
}

#[test]
fn white_space_behind_a_mark_and_crlf_are_no_part_of_it() {
    let crlf =
        block("<<<<<<< SEARCH  \nold\n======= \nnew\n>>>>>>> REPLACE\t\n").replace('\n', "\r\n");
    insta::assert_snapshot!(check(&crlf), @r#"edit "src/a.rs" [Hunk { search: "old\r\n", replace: "new\r\n" }] at 0..82"#);
}

#[test]
fn longer_marks_of_one_length_are_for_content_that_has_marks() {
    insta::assert_snapshot!(
        check(&block("<<<<<<<< SEARCH\n=======\n<<<<<<< HEAD\n========\n>>>>>>> REPLACE\n>>>>>>>> REPLACE\n")),
        @r#"edit "src/a.rs" [Hunk { search: "=======\n<<<<<<< HEAD\n", replace: ">>>>>>> REPLACE\n" }] at 0..103"#
    );
}

#[test]
fn a_block_without_hunks_or_with_text_beside_them_is_refused() {
    for content in ["", "\n", "fn whole() {}\n"] {
        assert!(
            check(&block(content)).starts_with("no-hunks 1:1 \"^^^edit src/a.rs\""),
            "{content}"
        );
    }
    insta::assert_snapshot!(check(&block("fn whole() {}\n")), @r#"
    no-hunks 1:1 "^^^edit src/a.rs"
      line 1: `^^^edit src/a.rs` has no hunk; write one or more hunks: `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`, each mark alone on a line; or give the whole content without the word `edit`
    "#);
    insta::assert_snapshot!(check(&block(&format!("{HUNK}Then:\n{HUNK}"))), @r#"
    text-outside-hunk 7:1 "Then:"
      line 7: `Then:` is in an edit block and belongs to no hunk; write each hunk as `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`, each mark alone on a line
    "#);
}

#[test]
fn marks_that_do_not_follow_each_other_are_refused() {
    for content in [
        "<<<<<<< SEARCH\nold\n>>>>>>> REPLACE\n",
        "<<<<<<< SEARCH\nold\n=======\n=======\nnew\n>>>>>>> REPLACE\n",
        "<<<<<<< SEARCH\nold\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n",
        "=======\nnew\n>>>>>>> REPLACE\n",
        "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n<<<<<<<< SEARCH\nx\n========\ny\n>>>>>>>> REPLACE\n",
    ] {
        assert!(
            check(&block(content)).starts_with("hunk-mark "),
            "{content}: {}",
            check(&block(content))
        );
    }
    insta::assert_snapshot!(check(&block("<<<<<<< SEARCH\nold\n=======\n=======\n>>>>>>> REPLACE\n")), @r#"
    hunk-mark 5:1 "======="
      line 5: `=======` is not the mark that is expected here; write each hunk as `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`, each mark alone on a line; if this line is content, use longer marks in the whole block
    "#);
}

#[test]
fn a_hunk_that_does_not_end_or_has_no_old_lines_is_refused() {
    insta::assert_snapshot!(check(&block("<<<<<<< SEARCH\nold\n=======\nnew\n")), @r#"
    unterminated-hunk 2:1 "<<<<<<< SEARCH"
      line 2: the hunk of `<<<<<<< SEARCH` does not end before its block does; write each hunk as `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`, each mark alone on a line
    "#);
    insta::assert_snapshot!(check(&block("<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n")), @r#"
    empty-search 2:1 "<<<<<<< SEARCH"
      line 2: `<<<<<<< SEARCH` has no lines to search for; repeat the lines that the new ones go next to, or give the whole file
    "#);
}

#[test]
fn an_edit_deletes_nothing_and_names_a_file_once() {
    insta::assert_snapshot!(check("^^^edit src/a.rs\n^^^delete\n"), @r#"
    remark-in-name 1:1 "^^^edit src/a.rs"
      line 1: `^^^edit src/a.rs` has more than a file name on its line; write `^^^src/a.rs` and nothing else on that line
    "#);
    insta::assert_snapshot!(check(&format!("{}^^^src/a.rs\nx\n^^^end\n", block(HUNK))), @r#"
    duplicate-file 8:4 "src/a.rs"
      line 8: `src/a.rs` already has a block (see line 1); give each file once, with its final content
    "#);
    insta::assert_snapshot!(check("^^^edit edit a\n^^^end\n"), @r#"
    remark-in-name 1:1 "^^^edit edit a"
      line 1: `^^^edit edit a` has more than a file name on its line; write `^^^edit a` and nothing else on that line
    "#);
    insta::assert_snapshot!(check("^^^edit end\n^^^end\n"), @r#"
    reserved-name 1:1 "^^^edit end"
      line 1: `^^^edit end` is neither an end marker nor a file name; write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, after its own `^^^`
    stray-end 2:1 "^^^end"
      line 2: `^^^end` closes nothing; remove it, or open its block before it, at the beginning of a line
    "#);
}

#[test]
fn an_indented_edit_is_a_block_and_a_file_named_edit_is_a_file() {
    let indented = block(HUNK).replace("^^^", "  ^^^");
    assert!(
        check(&indented).starts_with("edit \"src/a.rs\""),
        "{}",
        check(&indented)
    );
    assert!(check("^^^edit\nx\n^^^end\n").starts_with("write \"edit\""));
    assert!(check("^^^edits/a\nx\n^^^end\n").starts_with("write \"edits/a\""));
    assert!(
        check("^^^edit my file.txt\n<<<<<<< SEARCH\na\n=======\n>>>>>>> REPLACE\n^^^end\n")
            .starts_with("edit \"my file.txt\"")
    );
}

#[test]
fn marks_of_five_signs_text_behind_them_and_a_markdown_fence_around_hunks_are_read() {
    for content in [
        "<<<<< SEARCH\nold\n=====\nnew\n>>>>> REPLACE\n",
        "<<<<<<<<< SEARCH\nold\n=========\nnew\n>>>>>>>>> REPLACE\n",
        "<<<<<<< SEARCH src/a.rs\nold\n=======\nnew\n>>>>>>> REPLACE (done)\n",
        "<<<<<<< SEARCH:\nold\n=======\nnew\n>>>>>>> REPLACE:\n",
        "```rust\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```\n",
    ] {
        let read = check(&block(content));
        assert!(
            read.starts_with(r#"edit "src/a.rs" [Hunk { search: "old\n", replace: "new\n" }]"#),
            "{content}: {read}"
        );
    }
    for content in [
        "<<<< SEARCH\nold\n====\nnew\n>>>> REPLACE\n",
        "<<<<<<< SEARCHING\nold\n=======\nnew\n>>>>>>> REPLACE\n",
        "```\nfn whole() {}\n```\n",
    ] {
        let read = check(&block(content));
        assert!(
            ["no-hunks ", "text-outside-hunk "]
                .iter()
                .any(|code| read.starts_with(code)),
            "{content}: {read}"
        );
    }
    let heading = "<<<<<<< SEARCH\nTitle\n=====\n=======\nTitle!\n======\n>>>>>>> REPLACE\n";
    assert!(check(&block(heading)).starts_with(
        r#"edit "src/a.rs" [Hunk { search: "Title\n=====\n", replace: "Title!\n======\n" }]"#
    ));
}
