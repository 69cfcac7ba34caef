//! The cost of starting a command in each sandbox, compared with a plain spawn, in one interleaved run.
//!
//! `cargo bench -p code-commit-runner --bench start -- [ROUNDS]`

#![expect(
    clippy::disallowed_methods,
    reason = "a bench measures, and starts the plain twin itself"
)]
#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench that cannot be set up fails"
)]

use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use code_commit_runner::{
    Access, Backend, Cancel, Command, Confinement, Env, View, helper, run, survey,
};

fn main() -> ExitCode {
    helper().unwrap_or_else(|| {
        measure();
        ExitCode::SUCCESS
    })
}

fn measure() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(50_usize);
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    let working = survey(None)
        .into_iter()
        .filter_map(|(backend, works)| works.ok().map(|()| backend));
    let backends: Vec<Backend> = [Backend::Off].into_iter().chain(working).collect();
    let command = Command::new(["/bin/true"], &tree, Env::default());
    let cancel = Cancel::new().unwrap();

    let views: Vec<Backend> = backends
        .iter()
        .copied()
        .filter(|backend| backend.has_views())
        .collect();

    let mut times = vec![Vec::new(); 1 + backends.len() + views.len()];
    for _ in 0..rounds {
        times[0].push(timed(|| {
            let mut plain = std::process::Command::new("/bin/true");
            plain
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .unwrap();
        }));
        let run_in = |backend, view| {
            let confinement = Confinement {
                backend,
                access: Access {
                    tree: tree.clone(),
                    view,
                    ..Access::default()
                },
            };
            timed(|| {
                assert!(
                    run(&command, &confinement, &cancel, &mut |_, _| {})
                        .unwrap()
                        .success()
                );
            })
        };
        let (bare, with_view) = times[1..].split_at_mut(backends.len());
        for (backend, times) in backends.iter().zip(bare) {
            times.push(run_in(*backend, None));
        }
        for (backend, times) in views.iter().zip(with_view) {
            let layer = tempfile::tempdir_in(folder.path()).unwrap();
            times.push(run_in(*backend, Some(view_in(layer.path()))));
        }
    }
    let bare = backends.iter().map(ToString::to_string);
    let names = ["plain spawn".to_owned()].into_iter().chain(bare);
    let names = names.chain(views.iter().map(|backend| format!("{backend}, view")));
    println!(
        "{rounds} rounds, spawn to nothing left, ms\n{:16} {:>8} {:>8}",
        "", "median", "min"
    );
    for (name, times) in names.zip(&mut times) {
        times.sort_unstable();
        println!(
            "{name:16} {:8.2} {:8.2}",
            ms(times[times.len() / 2]),
            ms(times[0])
        );
    }
}

fn view_in(folder: &Path) -> View {
    let view = View {
        upper: folder.join("upper"),
        work: folder.join("work"),
    };
    [&view.upper, &view.work]
        .iter()
        .for_each(|folder| std::fs::create_dir(folder).unwrap());
    view
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
