//! Every sentence of the product in one file, to be read in one go.
//!
//! `DOCS_UPDATE=1 cargo test -p code-commit-cli --test end_to_end house::strings` writes it anew. Read the difference.

use std::path::Path;

use regex::{Captures, Regex};

use super::sources;
use crate::scenes::files;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/strings.txt");

/// What may hold a quotation mark, and string literals in their forms. The text of a literal is in one of the groups.
const TOKEN: &str = r#"(?sx)
    //[^\n]* | /\*.*?\*/
    | (?P<attribute> \#!?\[ (?: [^\[\]"] | "(?:[^"\\]|\\.)*" | \[[^\]]*\] )* \] )
    | '(?: \\u\{[^}]*\} | \\x.. | \\. | [^\\'] )'
    | b?r\#\#"(?P<raw2>.*?)"\#\# | b?r\#"(?P<raw1>.*?)"\# | b?r"(?P<raw>[^"]*)"
    | "(?P<escaped>(?:[^"\\]|\\.)*)"
"#;

/// Literals with a blank between words, each on one line. Of the attributes only `error` says something to a person.
fn sentences(source: &str) -> Vec<String> {
    let token = Regex::new(TOKEN).unwrap();
    let folded = Regex::new(r"\\\n\s*").unwrap();
    let text = |found: &Captures| {
        let group = |name| found.name(name).map(|text| text.as_str().to_owned());
        let escaped =
            group("escaped").map(|text| folded.replace_all(&text, "").replace("\\\"", "\""));
        escaped.or(group("raw")).or(group("raw1")).or(group("raw2"))
    };
    let mut all = Vec::new();
    for found in token.captures_iter(source) {
        match found.name("attribute").map(|attribute| attribute.as_str()) {
            Some(error) if error.starts_with("#[error(") => {
                all.extend(sentences(
                    error.trim_start_matches("#[").trim_end_matches(']'),
                ));
            }
            Some(_) => {}
            None => all.extend(text(&found)),
        }
    }
    let words = Regex::new(r"\S +\S").unwrap();
    all.retain(|text| words.is_match(text));
    all.iter().map(|text| text.replace('\n', "\\n")).collect()
}

#[test]
fn every_sentence_of_the_product_is_in_one_file() {
    let mut all = String::new();
    for (file, source) in sources() {
        let sentences = sentences(&source);
        if !file.starts_with("fixtures/") && !sentences.is_empty() {
            all.push_str(&format!("{file}\n{}\n\n", sentences.join("\n")));
        }
    }
    let place = Path::new(FILE);
    if std::env::var_os("DOCS_UPDATE").is_some() {
        files::write(place, &all);
    }
    let kept = files::text(place);
    let differs = kept.lines().zip(all.lines()).find(|(old, new)| old != new);
    assert!(
        kept == all,
        "{FILE} is not what the sources say, first here: {differs:?}; DOCS_UPDATE=1 writes it"
    );
}
