//! What the tools cannot do.

use super::{case, table, write};

#[test]
fn what_the_tools_cannot_do() {
    table(
        "errors_tools",
        &[
            case("parse without a file", &["parse", "nowhere.txt"]),
            case("parse of a folder", &["parse", "src"]),
            case("parse of bytes", &["parse", "reply"])
                .after(&write("reply", b"^^^a\n\xff\n^^^end\n")),
            case("parse of an open block", &["parse", "reply"])
                .after(&write("reply", b"^^^a\nx\n")),
            case("parse of two mistakes", &["parse", "reply"]).after(&write(
                "reply",
                b"^^^\nx\n^^^end\n^^^a\ny\n^^^end\n^^^a\nz\n^^^end\n",
            )),
            case("parse of nothing", &["parse", "-"]),
            case("parse of nothing to do", &["parse", "-"]).typed(b"I would rather not.\n"),
            case("apply without a file", &["apply", "nowhere.txt"]),
            case("apply of an open block", &["apply", "-"]).typed(b"^^^a\nx\n"),
            case("guard of no folder", &["guard", "--root", "nowhere", "a"]),
            case("a server of no folder", &["mcp", "--root", "nowhere"]),
            case("guard of what is no JSON", &["guard", "--stdin"]).typed(b"\"a\"\n\nb\n"),
            case("init where a file stands in the way", &["init"])
                .after(&|scene| {
                    std::fs::remove_dir_all(scene.at("agent-config")).unwrap();
                })
                .after(&write("agent-config", b"")),
            case("a demo without git", &["demo"]).env(&[("PATH", "[BESIDE]/bin")]),
            case("manual pages in the place of a file", &["man", "build.sh"]),
            case("a roll-up of nothing", &["rollup"])
                .after(&|scene| drop(scene.git(&["rm", "-rq", "--cached", "."]))),
        ],
    );
}
