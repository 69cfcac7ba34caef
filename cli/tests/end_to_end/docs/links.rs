//! Links between pages lead somewhere, and the table of contents has every page.

use std::path::Path;

use crate::docs::page::{all, blocks, root, text};

/// Where the links of a page lead, but for addresses of the web.
fn targets(text: &str) -> Vec<&str> {
    let inside: Vec<std::ops::Range<usize>> =
        blocks(text).iter().map(|block| block.at..block.at + block.lines.len()).collect();
    let prose = text.lines().enumerate().filter(|(at, _)| !inside.iter().any(|lines| lines.contains(at)));
    prose
        .flat_map(|(_, line)| line.split("](").skip(1))
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .filter(|target| !target.contains("://"))
        .collect()
}

/// The anchor of a heading, as the usual renderers make it.
fn anchor(heading: &str) -> String {
    let kept =
        heading.trim_start_matches('#').trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let mut wrong = Vec::new();
    for page in all() {
        let folder = root().join(&page).parent().unwrap().to_owned();
        for target in targets(&text(&page)) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { root().join(&page) } else { folder.join(file) };
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            let has_heading = heading.is_empty()
                || found.lines().any(|line| line.starts_with('#') && anchor(line) == heading);
            if !path.exists() || !has_heading {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_contents_has_every_page() {
    let contents = text(Path::new("docs/SUMMARY.md"));
    let listed = targets(&contents);
    for page in all().iter().filter_map(|page| page.strip_prefix("docs").ok()) {
        let name = page.to_str().unwrap();
        assert!(name == "SUMMARY.md" || listed.contains(&name), "{name} is not in docs/SUMMARY.md");
    }
}

#[test]
fn a_heading_is_found_by_its_anchor() {
    assert_eq!(anchor("## What a build sees, `PATH`!"), "what-a-build-sees-path");
    assert_eq!(targets("see [a](b.md#c)\n```\n[x](y)\n```\nand [w](https://localhost)\n"), ["b.md#c"]);
}
