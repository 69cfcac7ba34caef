//! Files of a crate import each other in circles of at most three. What a file takes through a re-export counts as taken
//! from the file that re-exports it, as a reader finds it, and what lib.rs re-exports from where lib.rs takes it.

use std::collections::{BTreeMap, BTreeSet};

/// The files of a circle.
const MOST: usize = 3;

type Path = Vec<String>;

/// The files of one crate by the path of their module, and the paths that each of them names, in `use` declarations and
/// elsewhere.
type Files = BTreeMap<Path, Vec<Path>>;

#[test]
fn no_circle_of_imports_is_larger_than_three_files() {
    let mut crates: BTreeMap<String, Files> = BTreeMap::new();
    for (name, text) in super::sources() {
        let (folder, file) = name.split_once("/src/").unwrap();
        let is_root = matches!(file, "lib.rs" | "main.rs");
        let module: Path = file
            .trim_end_matches(".rs")
            .split('/')
            .map(str::to_owned)
            .collect();
        let module = if is_root { Path::new() } else { module };
        crates
            .entry(folder.to_owned())
            .or_default()
            .insert(module, read(&text));
    }
    let larger = crates
        .iter()
        .map(|(name, files)| (name.as_str(), circles(files)));
    let larger: BTreeMap<_, _> = larger.filter(|(_, circles)| !circles.is_empty()).collect();
    assert_eq!(
        larger,
        BTreeMap::new(),
        "files in circles of more than {MOST}"
    );
}

/// Comments, and `use` declarations with all that they hold in braces, are taken apart; the rest is searched for paths.
fn read(text: &str) -> Vec<Path> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    let text = lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("pub(in crate::", "pub(");
    let (mut named, mut rest) = (Vec::new(), String::new());
    for statement in text.split_inclusive(';') {
        let Some(at) = statement
            .rfind("use ")
            .filter(|at| !statement[..*at].ends_with(char::is_alphanumeric))
        else {
            rest.push_str(statement);
            continue;
        };
        rest.push_str(&statement[..at]);
        named.extend(expanded(statement[at + 4..].trim_end_matches(';'), &[]));
    }
    let paths = rest.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
    let paths = paths.filter(|word| word.contains("::"));
    named.extend(paths.map(|path| path.split("::").map(str::to_owned).collect::<Path>()));
    named
}

/// Each path of a `use` tree.
fn expanded(tree: &str, above: &[String]) -> Vec<Path> {
    let tree = tree.trim();
    let (head, inner) = tree
        .split_once('{')
        .map_or((tree, None), |(head, inner)| (head, Some(inner)));
    let head = head.split(" as ").next().unwrap();
    let parts = head
        .split("::")
        .map(str::trim)
        .filter(|part| !part.is_empty() && *part != "self");
    let is_self = tree == "self" || tree.starts_with("self::");
    let own = is_self
        .then(|| "self".to_owned())
        .filter(|_| above.is_empty());
    let path: Path = above
        .iter()
        .cloned()
        .chain(own)
        .chain(parts.map(str::to_owned))
        .collect();
    match inner {
        Some(inner) => branches(inner.trim_end().trim_end_matches('}'))
            .flat_map(|part| expanded(part, &path))
            .collect(),
        None => vec![path],
    }
}

/// The parts of a list, which may hold lists.
fn branches(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let at_top = move |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    list.split(at_top).filter(|part| !part.trim().is_empty())
}

/// The file of a path, if it is one of these and another one than `from`.
fn target(files: &Files, from: &Path, path: &[String]) -> Option<Path> {
    let (first, mut rest) = path.split_first()?;
    let mut at = from.clone();
    match first.as_str() {
        "crate" => at.clear(),
        "self" => {}
        "super" => {
            at.pop();
            while let Some(("super", more)) =
                rest.split_first().map(|(name, more)| (name.as_str(), more))
            {
                at.pop();
                rest = more;
            }
        }
        _ => rest = path,
    }
    while let Some((name, more)) = rest.split_first() {
        let below: Path = at.iter().chain([name]).cloned().collect();
        if !files.contains_key(&below) {
            break;
        }
        (at, rest) = (below, more);
    }
    if !at.is_empty() {
        return (at != *from).then_some(at);
    }
    let name = rest.first().filter(|_| !from.is_empty())?;
    let exported = files
        .get(&at)?
        .iter()
        .find(|path| path.last() == Some(name))?;
    target(files, &at, exported).filter(|file| file != from)
}

/// The sizes of the circles that are too large, the largest first.
fn circles(files: &Files) -> Vec<usize> {
    let next = |from: &Path| {
        files[from]
            .iter()
            .filter_map(|path| target(files, from, path))
            .collect()
    };
    let arrows: BTreeMap<&Path, Vec<Path>> = files.keys().map(|from| (from, next(from))).collect();
    let reached = |from| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(file) = todo.pop() {
            todo.extend(arrows[file].iter().filter(|to| seen.insert(*to)));
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        files.keys().map(|from| (from, reached(from))).collect();
    let is_circle =
        |one: &Path, other: &Path| reached[one].contains(other) && reached[other].contains(one);
    let circle = |one| files.keys().filter(|other| is_circle(one, other)).collect();
    let circles: BTreeSet<Vec<&Path>> = files.keys().map(circle).collect();
    circles
        .iter()
        .filter(|circle| circle.len() > MOST)
        .for_each(|circle| eprintln!("{circle:?}"));
    let mut sizes: Vec<usize> = circles
        .iter()
        .map(Vec::len)
        .filter(|size| *size > MOST)
        .collect();
    sizes.sort_by(|one, other| other.cmp(one));
    sizes
}
