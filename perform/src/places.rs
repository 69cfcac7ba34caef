//! Keeps the paths of this machine out of the record: the project may lie elsewhere when the run goes on.

use std::path::Path;

/// The folders that messages of the harness may name. What a program prints is recorded as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Vec<String>);

impl Places {
    /// Names files of a run by the name of its folder.
    pub(crate) fn around(run: &Path) -> Self {
        let mut places = Self::default();
        run.parent()
            .into_iter()
            .for_each(|parent| places.add(parent));
        places
    }

    /// Names what is below `folder` relative to it.
    pub(crate) fn add(&mut self, folder: &Path) {
        let name = folder.to_string_lossy().trim_end_matches('/').to_owned();
        if !name.is_empty() {
            self.0.push(name);
            // Of two folders that contain each other, the inner one gives the shorter name.
            self.0.sort_by_key(|place| std::cmp::Reverse(place.len()));
        }
    }

    /// The message with relative paths.
    pub(crate) fn shorten(&self, message: &str) -> String {
        self.0.iter().fold(message.to_owned(), |message, place| {
            without(&message, place)
        })
    }
}

fn without(message: &str, place: &str) -> String {
    let is_of_name = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let mut short = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(place) {
        short.push_str(before);
        rest = after;
        if short.ends_with(is_of_name) {
            short.push_str(place);
        } else if let Some(below) = after.strip_prefix('/') {
            rest = below;
        } else if after.starts_with(is_of_name) {
            short.push_str(place);
        } else {
            short.push('.');
        }
    }
    short + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_files_relative_to_the_tree_and_to_the_folder_of_the_run() {
        let mut places = Places::around(Path::new("/srv/out/1f2e"));
        places.add(Path::new("/srv/tree"));
        let short = |message: &str| places.shorten(message);
        assert_eq!(
            short("/srv/out/1f2e/undo/1 is in use"),
            "1f2e/undo/1 is in use"
        );
        assert_eq!(
            short("cannot read /srv/tree/a and /srv/tree: no"),
            "cannot read a and .: no"
        );
        assert_eq!(
            short("`/srv/tree/.git/x`, /srv/tree2/a"),
            "`.git/x`, /srv/tree2/a"
        );
        assert_eq!(short("/mnt/srv/tree/a"), "/mnt/srv/tree/a");
        assert_eq!(
            Places::around(Path::new("/run")).shorten("/run/a /b"),
            "/run/a /b"
        );
    }
}
