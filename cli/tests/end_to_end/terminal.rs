//! What a person sees: on terminals of three widths, with and without colour, and every error message.

mod errors;
mod live;
mod widths;

use crate::scenes::commit::Scene;

/// Compares with a stored snapshot in which times, ports and temporary places have no say.
pub fn check(name: &str, scene: &Scene, text: &str) {
    let text = scene.without_places(text);
    insta::with_settings!({
        filters => [
            (r"\d{4}(-\d\d){5}", "[STAMP.............]"),
            (r"\b\d\.\d s\b", "[T] s"),
        ],
        prepend_module_to_snapshot => false,
        snapshot_path => "terminal/snapshots",
    }, { insta::assert_snapshot!(name, text) });
}
