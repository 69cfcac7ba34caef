//! Lines of a file that differ from those of a hunk only in what models get wrong and what proves nothing: trailing
//! blanks, typographic signs, one uniform indentation. Nothing here compares by similarity.

use std::collections::HashMap;

use memchr::memmem;

use super::misfit::{Rule, Why};
use crate::Span;

/// How many lines are compared for one hunk. More candidates than that are no place.
const MOST_COMPARED: usize = 1 << 20;

/// The lines of a text, and the same ones without what may differ.
pub(super) struct Loose<'t> {
    text: &'t str,
    /// Each line with its end.
    lines: Vec<Span>,
    /// A newline, then the key of every line with one behind it.
    keys: String,
    /// Where in `keys` each line begins.
    starts: Vec<usize>,
}

/// A place, and the lines that a hunk means to put there.
pub(super) struct Place {
    pub(super) span: Span,
    pub(super) replace: String,
    pub(super) rules: Vec<Rule>,
}

/// What of a line is compared.
fn key(line: &str) -> String {
    ascii(line.trim())
}

fn ascii(text: &str) -> String {
    text.chars().map(plain).collect()
}

/// The ASCII form of a typographic quote, dash or blank; any other character as it is.
fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2bc}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2007}' | '\u{202f}' => ' ',
        _ => c,
    }
}

impl<'t> Loose<'t> {
    /// Of a text that begins with a line break, which is no line.
    pub(super) fn of(text: &'t str) -> Self {
        let (mut lines, mut starts, mut keys, mut at) =
            (Vec::new(), Vec::new(), "\n".to_owned(), 1);
        for line in text.get(1..).unwrap_or_default().split_inclusive('\n') {
            lines.push(at..at + line.len());
            at += line.len();
            starts.push(keys.len());
            keys.push_str(&key(line));
            keys.push('\n');
        }
        Self {
            text,
            lines,
            keys,
            starts,
        }
    }

    /// The one place that the fewest rules allow. `Absent` if what the hunk means there is not certain.
    pub(super) fn place(&self, search: &str, replace: &str) -> Result<Place, Why> {
        let search: Vec<&str> = search.lines().collect();
        let wanted: String = search
            .iter()
            .flat_map(|line| [key(line), "\n".to_owned()])
            .collect();
        if wanted.trim().is_empty() {
            return Err(Why::Absent);
        }
        let needle = ["\n", &wanted].concat();
        let mut best: Vec<(usize, Fit<'_>)> = Vec::new();
        let (mut from, mut left) = (0, MOST_COMPARED);
        while let Some(found) = memmem::find(
            self.keys.as_bytes().get(from..).unwrap_or_default(),
            needle.as_bytes(),
        ) {
            let first = self.starts.partition_point(|start| *start <= from + found);
            left = left.checked_sub(search.len()).ok_or(Why::Absent)?;
            from += found + 1;
            let Some(fit) = Fit::of(&search, &self.there(first, search.len())) else {
                continue;
            };
            match best.first().map_or(std::cmp::Ordering::Less, |(_, other)| {
                fit.rank().cmp(&other.rank())
            }) {
                std::cmp::Ordering::Less => best = vec![(first, fit)],
                std::cmp::Ordering::Equal => best.push((first, fit)),
                std::cmp::Ordering::Greater => {}
            }
        }
        match &*best {
            [] => Err(Why::Absent),
            [(first, fit)] => {
                let replace = fit.replacement(replace).ok_or(Why::Absent)?;
                let line = |at: usize| self.lines.get(at).cloned().unwrap_or_default();
                let span = line(*first).start..line(first + search.len() - 1).end;
                Ok(Place {
                    span,
                    replace,
                    rules: fit.rules(),
                })
            }
            [(one, _), (other, _), ..] => Err(Why::Ambiguous(one + 1, other + 1)),
        }
    }

    fn there(&self, first: usize, count: usize) -> Vec<&'t str> {
        let lines = self.lines.iter().skip(first).take(count);
        lines
            .map(|line| self.text.get(line.clone()).unwrap_or_default())
            .collect()
    }
}

/// How the lines of a hunk differ from lines of the file with the same keys.
struct Fit<'l> {
    /// Both without their ends.
    pairs: Vec<(&'l str, &'l str)>,
    /// The end of every line of the file.
    end: &'static str,
    /// The indentation that the hunk's first line has lost, if the shift does not explain it.
    lost: Option<&'l str>,
    shift: Shift,
    has_signs: bool,
}

/// From the indentation of a hunk to that of the file.
#[derive(PartialEq)]
enum Shift {
    None,
    Add(String),
    Remove(String),
    /// One tab for so many blanks.
    ToTabs(usize),
    /// So many blanks for one tab.
    ToBlanks(usize),
}

impl<'l> Fit<'l> {
    /// `None` if the indentation or the line ends are not uniform.
    fn of(search: &[&'l str], there: &[&'l str]) -> Option<Self> {
        let end = if there.first()?.ends_with("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let is_uniform = there
            .iter()
            .all(|line| line.ends_with("\r\n") == (end == "\r\n"));
        let without_ends = there.iter().map(|line| line.trim_end_matches(['\r', '\n']));
        let pairs: Vec<(&str, &str)> = search.iter().copied().zip(without_ends).collect();
        let indents: Vec<(&str, &str)> = pairs
            .iter()
            .filter(|(ours, _)| !ours.trim().is_empty())
            .map(|(ours, file)| (indent(ours), indent(file)))
            .collect();
        let (lost, shift) = match (Shift::of(&indents), &*indents) {
            (Some(shift), _) => (None, shift),
            (None, [("", file), others @ ..]) => (Some(*file), Shift::of(others)?),
            (None, _) => return None,
        };
        let differ =
            |(ours, file): &(&str, &str)| ours.trim() != file.trim() || !indent(ours).is_ascii();
        let has_signs = pairs.iter().any(differ);
        is_uniform.then_some(Self {
            pairs,
            end,
            lost,
            shift,
            has_signs,
        })
    }

    /// Fewer rules come first, and signs before indentation.
    fn rank(&self) -> (bool, bool) {
        (self.has_shift(), self.has_signs)
    }

    fn has_shift(&self) -> bool {
        self.lost.is_some() || self.shift != Shift::None
    }

    fn rules(&self) -> Vec<Rule> {
        let has_blanks = self
            .pairs
            .iter()
            .any(|(ours, file)| tail(ours) != tail(file));
        let rules = [
            (has_blanks, Rule::TrailingBlanks),
            (self.has_signs, Rule::Signs),
            (self.has_shift(), Rule::Indentation),
        ];
        rules
            .into_iter()
            .filter_map(|(is_used, rule)| is_used.then_some(rule))
            .collect()
    }

    /// The new lines as the file would have them: one that is repeated from the old ones stays as it is in the file.
    fn replacement(&self, replace: &str) -> Option<String> {
        let new: Vec<&str> = replace.lines().collect();
        if !self.is_certain(&new) {
            return None;
        }
        let mut kept: HashMap<&str, Option<&str>> = HashMap::new();
        for (ours, file) in &self.pairs {
            let one = kept.entry(ours).or_insert(Some(file));
            *one = one.filter(|other| other == file);
        }
        let signs = Signs::of(&self.pairs);
        let drops_tails = self.pairs.iter().any(|(ours, _)| !tail(ours).is_empty())
            && self.pairs.iter().all(|(_, file)| tail(file).is_empty());
        // Where as many lines come as go, each changes the one in its place.
        let is_as_long = new.len() == self.pairs.len();
        let mut lines = String::new();
        for (at, line) in new.into_iter().enumerate() {
            let beside = self.pairs.get(at).filter(|_| is_as_long);
            match kept.get(line) {
                Some(Some(file)) => lines.push_str(file),
                Some(None) | None => {
                    let body = signs.body(
                        line.trim(),
                        beside.map(|(ours, file)| [ours.trim(), file.trim()]),
                    )?;
                    if !body.is_empty() {
                        match self.lost.filter(|_| at == 0 && indent(line).is_empty()) {
                            Some(lost) => lines.push_str(lost),
                            None => lines.push_str(&self.shift.indent(&ascii(indent(line)))?),
                        }
                        lines.push_str(&body);
                    }
                    lines.push_str(if drops_tails { "" } else { tail(line) });
                }
            }
            lines.push_str(self.end);
        }
        Some(lines)
    }

    /// A single line may have lost or gained its indentation alone: then nobody knows what that of further new lines is.
    /// Where the first line has lost it, a later one without any may have, too.
    fn is_certain(&self, new: &[&str]) -> bool {
        let is_bare = |line: &&str| !line.trim().is_empty() && indent(line).is_empty();
        if self.lost.is_some() && new.iter().skip(1).any(is_bare) {
            return false;
        }
        let mut old = self
            .pairs
            .iter()
            .map(|(ours, _)| *ours)
            .filter(|line| !line.trim().is_empty());
        let (first, is_single) = (old.next().unwrap_or_default(), old.next().is_none());
        let mut later = new.iter().filter(|line| !line.trim().is_empty()).skip(1);
        match &self.shift {
            Shift::Add(_) if is_single => later.all(|line| indent(line).is_empty()),
            Shift::Remove(_) if is_single => later.all(|line| line.starts_with(indent(first))),
            Shift::None
            | Shift::Add(_)
            | Shift::Remove(_)
            | Shift::ToTabs(_)
            | Shift::ToBlanks(_) => true,
        }
    }
}

fn indent(line: &str) -> &str {
    line.strip_suffix(line.trim_start()).unwrap_or_default()
}

fn tail(line: &str) -> &str {
    line.strip_prefix(line.trim_end()).unwrap_or_default()
}

impl Shift {
    /// The one that explains all pairs of indentations: the hunk's and the file's.
    fn of(indents: &[(&str, &str)]) -> Option<Self> {
        let pairs: Vec<(String, String)> = indents
            .iter()
            .map(|(ours, file)| (ascii(ours), ascii(file)))
            .collect();
        let (ours, file) = pairs.first()?;
        let strip = |long: &str, short: &str| long.strip_suffix(short).map(str::to_owned);
        let shifts = [
            Some(Self::None),
            strip(file, ours).map(Self::Add),
            strip(ours, file).map(Self::Remove),
            unit(&pairs, |(ours, file)| (ours, file)).map(Self::ToTabs),
            unit(&pairs, |(ours, file)| (file, ours)).map(Self::ToBlanks),
        ];
        let explains = |shift: &Self| {
            pairs
                .iter()
                .all(|(ours, file)| shift.indent(ours).as_ref() == Some(file))
        };
        shifts.into_iter().flatten().find(explains)
    }

    /// The file's indentation for one of the hunk; `None` if it has none.
    fn indent(&self, ours: &str) -> Option<String> {
        let is_of = |c: char| ours.chars().all(|other| other == c);
        match self {
            Self::None => Some(ours.to_owned()),
            // No line gets an indentation of tabs and blanks.
            Self::Add(more) => {
                Some([more, ours].concat()).filter(|all| all.chars().all(|c| all.starts_with(c)))
            }
            Self::Remove(less) => ours.strip_prefix(less.as_str()).map(str::to_owned),
            Self::ToTabs(unit) => (is_of(' ') && ours.len().is_multiple_of(*unit))
                .then(|| "\t".repeat(ours.len() / unit)),
            Self::ToBlanks(unit) => is_of('\t').then(|| " ".repeat(ours.len() * unit)),
        }
    }
}

/// How many blanks stand for a tab, by the first line that has any.
fn unit(
    pairs: &[(String, String)],
    order: impl Fn(&(String, String)) -> (&String, &String),
) -> Option<usize> {
    let (blanks, tabs) = pairs
        .iter()
        .map(order)
        .find(|(_, tabs)| tabs.starts_with('\t'))?;
    let unit = blanks.len() / tabs.len();
    [2, 3, 4, 8].contains(&unit).then_some(unit)
}

/// What the file has for the typographic signs of a hunk; `None` for one that stands for several.
struct Signs(HashMap<char, Option<char>>);

impl Signs {
    fn of(pairs: &[(&str, &str)]) -> Self {
        let mut signs = HashMap::new();
        for (ours, file) in pairs
            .iter()
            .flat_map(|(ours, file)| ours.trim().chars().zip(file.trim().chars()))
        {
            if plain(ours) != ours {
                let one = signs.entry(ours).or_insert(Some(file));
                *one = one.filter(|other| *other == file);
            }
        }
        Self(signs)
    }

    /// The text of a new line: what it shares with the old one beside it stays as the file has it.
    fn body(&self, new: &str, beside: Option<[&str; 2]>) -> Option<String> {
        let new: Vec<char> = new.chars().collect();
        let [ours, file] = beside
            .unwrap_or_default()
            .map(|text| text.chars().collect::<Vec<char>>());
        let same = |one: &(&char, &char)| one.0 == one.1;
        let head = new.iter().zip(&ours).take_while(same).count();
        let most = new.len().min(ours.len()) - head;
        let back = new
            .iter()
            .rev()
            .zip(ours.iter().rev())
            .take(most)
            .take_while(same)
            .count();
        let middle = new
            .get(head..new.len() - back)?
            .iter()
            .map(|c| self.sign(*c))
            .collect::<Option<String>>()?;
        let [before, behind] = [file.get(..head)?, file.get(file.len() - back..)?];
        Some(
            before
                .iter()
                .chain(middle.chars().collect::<Vec<_>>().iter())
                .chain(behind)
                .collect(),
        )
    }

    fn sign(&self, c: char) -> Option<char> {
        let changes_any = || self.0.iter().any(|(ours, file)| *file != Some(*ours));
        match self.0.get(&c) {
            Some(known) => *known,
            None if plain(c) != c && changes_any() => None,
            None => Some(c),
        }
    }
}
