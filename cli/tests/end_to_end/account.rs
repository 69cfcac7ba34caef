//! What builds leave in ignored files, and builds in trees that cannot have a view.

use std::process::Command;

use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::program::{must_have, where_mounted};

/// Changes one file and makes another.
const REPLY: &str = "^^^model\nnew\n^^^end\n^^^m/model\nnew\n^^^end\n";

fn command(scene: &Scene) -> Command {
    let model = scene.model();
    scene.keyed(
        &[&model[..], &["--sandbox", "auto", "--rounds", "2"]].concat(),
        &[],
    )
}

/// A build that leaves a product that git ignores, and changes a file.
fn with_product() -> Scene {
    let build = "#!/bin/sh\nhead -c 5000 /dev/zero > product.o\necho formatted > a\n";
    let files = [
        (".gitignore", "/agent-config\n*.o\n"),
        ("build.sh", build),
        ("a", "a\n"),
        ("model", "old\n"),
    ];
    let scene = Scene::with_files(&files, Script::new([Step::text(REPLY)]));
    scene.write("agent-config/query.txt", "change a\n");
    scene
}

#[test]
fn what_a_build_in_a_view_leaves_in_ignored_files_comes_into_the_tree_and_is_counted() {
    let scene = with_product();
    let ran = scene.ran(command(&scene).arg("--verbose"));
    if !ran.err.contains("sandbox: namespaces") {
        eprintln!("SKIPPED: there is no view without namespaces: {ran}");
        return;
    }
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(scene.read("product.o").len(), 5000);
    ran.err_has("the build wrote 5.0 kB of ignored files");
    must_have(&scene.recorded("events.jsonl"), "\"ignored_bytes\":5000");
    assert!(
        !scene.at(".git/code-commit/view").exists(),
        "the layer is gone"
    );
}

/// The kernel does not show one file system through another.
#[test]
fn a_tree_with_another_mount_below_it_is_built_without_a_view_and_accounted_for() {
    let scene = with_product();
    let mount =
        "mkdir \"$0/mounted\" && mount -t tmpfs none \"$0/mounted\" || exit 99; exec \"$@\"";
    let Some(ran) = where_mounted(mount, scene.project.root(), &command(&scene)) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran}");
    ran.out_has("M a +1 −1 (by the build)");
    assert!(
        !scene.recorded("events.jsonl").contains("ignored_bytes"),
        "its size is unknown"
    );
}
