//! A record holds no path of the machine it was made on.

use std::path::Path;

use serde_json::json;

use crate::scenes::files;
use crate::scenes::order::{BAD, GOOD, Scene as Order, greet};

/// The first line of the plan, the journal or a pre-image's manifest of the run that names this folder.
pub fn place_in(run: &Path, place: &Path) -> Option<String> {
    let is_contract =
        |name: &str| ["run.json", "events.jsonl"].contains(&name) || name.starts_with("backup/");
    let record = files::named(run);
    assert!(
        record.iter().any(|(name, _)| name == "events.jsonl"),
        "{record:?}"
    );
    let places = [place.to_path_buf(), place.canonicalize().unwrap()];
    let places = places.map(|place| place.display().to_string());
    record
        .iter()
        .filter(|(name, _)| is_contract(name))
        .flat_map(|(_, text)| text.lines())
        .find(|line| places.iter().any(|place| line.contains(place)))
        .map(str::to_owned)
}

#[test]
fn an_order_whose_undo_folder_is_taken_shows_no_place_to_the_model() {
    let scene = Order::with(&[&greet(BAD), &greet(GOOD)]);
    let command = "sh -c 'sh tests/run.sh || { for run in ../out/*; do mkdir -p $run/backup/2; echo x > $run/backup/2/x; done; exit 1; }'";
    scene.place_order(&json!({ "acceptance_commands": [command] }));
    scene.run(&[]);
    let runs = scene.runs();
    assert!(!runs.is_empty());
    for run in runs {
        assert_eq!(place_in(&run, scene.project.beside()), None);
    }
}
