//! The orders in `fixtures/orders`, most of them hostile: what is wrong with each, field by field, and whether its schema says so too.
//!
//! Beside `NNN_name.json` lies `NNN_name.expected`; `ORDERS_UPDATE=1` writes it anew, to be read before it is kept.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::order::schemas::faults;
use crate::scenes::files;
use crate::scenes::order::{Scene, order};
use crate::scenes::program::Ran;

/// A repository with what hostile orders name: links, a folder, a FIFO, a file that is no text.
fn scene() -> Scene {
    let scene = Scene::with(&[]);
    symlink("greet.sh", scene.root().join("src/link.sh")).unwrap();
    symlink("src/greet.sh", scene.root().join("link.sh")).unwrap();
    symlink("src", scene.root().join("linked")).unwrap();
    scene.write("latin1.txt", b"caf\xe9\n");
    scene.project.commit("links").unwrap();
    files::make_pipe(&scene.at("pipe"));
    scene
}

fn orders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/orders");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .collect();
    paths.sort();
    paths
}

/// What `order check` says about an order, and what its schema does.
fn judged(scene: &Scene, file: &Path) -> String {
    let check = Ran::of(&mut scene.program(&["order", "check", file.to_str().unwrap(), "--json"]));
    let first = check.out.lines().next().unwrap_or_default();
    let found: Value =
        serde_json::from_str(first).unwrap_or_else(|_| panic!("{}: {}", file.display(), check.err));
    let mut text = format!(
        "{}\n",
        if found["ok"] == true {
            "accepted"
        } else {
            "refused"
        }
    );
    let shape = match serde_json::from_slice::<Value>(&fs::read(file).unwrap()) {
        Ok(value) if faults("work_order", &value).is_empty() => "fits the schema",
        Ok(_) => "does not fit the schema",
        Err(_) => "is no JSON",
    };
    writeln!(text, "{shape}").unwrap();
    for problem in found["problems"].as_array().unwrap() {
        let field = problem["field"].as_str().unwrap();
        writeln!(
            text,
            "{field}: {}",
            plain(problem["message"].as_str().unwrap())
        )
        .unwrap();
    }
    assert_eq!(check.code, Some(i32::from(found["ok"] != true)));
    text
}

/// On one line.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() {
                c.escape_debug().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

#[test]
fn every_hostile_order_is_refused_with_its_fields_named() {
    let scene = scene();
    let (before, mut wrong) = (scene.state(), Vec::new());
    for file in orders() {
        let (now, expected) = (judged(&scene, &file), file.with_extension("expected"));
        if std::env::var_os("ORDERS_UPDATE").is_some() {
            fs::write(&expected, &now).unwrap();
        }
        if fs::read_to_string(&expected).unwrap_or_default() != now {
            wrong.push(format!("{}:\n{now}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(scene.state(), before);
}

/// What `check` refuses `run` refuses too, before anything is there.
#[test]
fn no_hostile_order_is_begun() {
    let scene = scene();
    let before = scene.state();
    for file in orders() {
        if fs::read_to_string(file.with_extension("expected"))
            .unwrap()
            .starts_with("accepted")
        {
            continue;
        }
        let ran = scene.run(&["--work-order", file.to_str().unwrap()]);
        assert_eq!(
            ran.code,
            Some(3),
            "{}: {}{}",
            file.display(),
            ran.out,
            ran.err
        );
        assert!(
            ran.err.contains("cannot be carried out"),
            "{}: {}",
            file.display(),
            ran.err
        );
    }
    assert_eq!((scene.runs().len(), scene.calls()), (0, 0));
    assert_eq!(scene.state(), before);
}

#[test]
fn an_order_of_ten_megabytes_and_one_that_never_ends_are_refused_at_once() {
    let scene = Scene::with(&[]);
    scene.place(
        "order.json",
        order(&json!({ "intent": "x".repeat(10 << 20) }))
            .to_string()
            .as_bytes(),
    );
    symlink("/dev/zero", scene.beside("zero.json")).unwrap();
    for file in [scene.beside("order.json"), scene.beside("zero.json")] {
        let run = scene.run(&["--work-order", file.to_str().unwrap()]);
        assert_eq!(run.code, Some(3), "{}", run.err);
        run.err_has("is larger than 1 MiB");
    }
}

#[test]
fn lists_of_very_many_mistakes_are_read_in_one_pass_and_told_in_part() {
    let scene = Scene::with(&[]);
    let files: Vec<String> = (0..60_000).map(|n| format!("/{n}")).collect();
    scene.place_order(&json!({ "allowed_files": files }));
    let run = scene.run(&[]).exits(3);
    assert!(
        run.err.contains("allowed_files[0]: is an absolute path"),
        "{}",
        &run.err[..500]
    );
    assert!(
        run.err.contains("more"),
        "{}",
        &run.err[run.err.len() - 500..]
    );
    assert!(run.err.lines().count() < 60, "{}", run.err.lines().count());
}
