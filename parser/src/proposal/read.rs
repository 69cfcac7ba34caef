//! Builds a proposal from tokens, by the schema. Each production reads its own tokens, and none is
//! recursive.

use std::borrow::Cow;
use std::collections::HashSet;

use super::json::{BLANKS, Is, Token, Tokens};
use super::{Change, Edit, FileWrite, Limits, Proposal, ProposalCode};
use crate::Span;
use crate::diagnostic::{Errors, Findings};

pub(super) fn whole<'t>(
    text: &'t str,
    limits: &Limits,
) -> Result<Proposal<'t>, Errors<ProposalCode>> {
    let mut reader = Reader {
        tokens: Tokens::new(text),
        findings: Findings::default(),
    };
    match reader.proposal(text, limits) {
        Ok(proposal) if reader.findings.is_empty() => Ok(proposal),
        Ok(_) | Err(Stop) => Err(Errors::new(text, reader.findings, Vec::new())),
    }
}

/// Reading cannot continue; the reason has been reported.
struct Stop;

struct Reader<'t> {
    tokens: Tokens<'t>,
    findings: Findings<ProposalCode>,
}

type Text<'t> = (Cow<'t, str>, Span);

enum Value<'t> {
    Summary(Text<'t>),
    Writes(Vec<Write<'t>>),
}

/// A file before it is judged.
struct Write<'t> {
    path: Text<'t>,
    base_sha256: Text<'t>,
    change: (Change<'t>, Span),
}

/// The value of a key of a file.
enum Member<'t> {
    Text(Text<'t>),
    Edits(Vec<Edit<'t>>, Span),
}

impl<'t> Member<'t> {
    fn text(self) -> Option<Text<'t>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Edits(..) => None,
        }
    }

    fn change(self) -> (Change<'t>, Span) {
        match self {
            Self::Text((content, span)) => (Change::Content(content), span),
            Self::Edits(edits, span) => (Change::Edits(edits), span),
        }
    }
}

/// A key's value, if it was given and can be used.
struct Slot<V> {
    key: &'static str,
    is_given: bool,
    value: Option<V>,
}

/// The keys of a file of which it has exactly one.
const CHANGES: [&str; 2] = ["content", "edits"];

impl<'t> Reader<'t> {
    /// proposal = `{` `summary` string, `writes` list `}`, in any order
    fn proposal(&mut self, text: &str, limits: &Limits) -> Result<Proposal<'t>, Stop> {
        let blanks = text.len() - text.trim_start().len();
        if text.trim_start().starts_with("```") {
            return Err(self.stop(ProposalCode::MarkdownFence, blanks..blanks + 3));
        }
        let opening = self.next()?;
        if opening.is != Is::Sign('{') {
            return Err(self.wrong_type(&opening, "proposal"));
        }
        let (slots, _) =
            self.members(&opening, ["summary", "writes"], |reader, key| match key {
                "summary" => Ok(reader.string(key)?.map(Value::Summary)),
                _ => Ok(Some(Value::Writes(reader.writes()?))),
            })?;
        let behind = self.tokens.rest().trim_start_matches(BLANKS);
        if !behind.is_empty() {
            return Err(self.stop(
                ProposalCode::TrailingData,
                text.len() - behind.len()..text.len(),
            ));
        }
        let mut proposal = Proposal {
            summary: Cow::Borrowed(""),
            writes: Vec::new(),
        };
        for value in slots.into_iter().filter_map(|slot| slot.value) {
            match value {
                Value::Summary((summary, _)) => proposal.summary = summary,
                Value::Writes(writes) => proposal.writes = self.judge(writes, limits),
            }
        }
        Ok(proposal)
    }

    /// writes = `[` write (`,` write)* `]`
    fn writes(&mut self) -> Result<Vec<Write<'t>>, Stop> {
        let (writes, span) = self.list("writes", Self::write)?;
        if writes.is_empty() {
            self.findings.push(ProposalCode::EmptyWrites, span, None);
        }
        Ok(writes.into_iter().flatten().collect())
    }

    /// write = `{` `path` string, `base_sha256` string, `content` string or `edits` list `}`, in any order
    fn write(&mut self, opening: &Token<'t>) -> Result<Option<Write<'t>>, Stop> {
        if opening.is != Is::Sign('{') {
            return Err(self.wrong_type(opening, "writes"));
        }
        let ([path, hash, content, edits], span) = self.members(
            opening,
            ["path", "base_sha256", "content", "edits"],
            |reader, key| match key {
                "edits" => reader.edits(),
                _ => Ok(reader.string(key)?.map(Member::Text)),
            },
        )?;
        let [path, hash] = [path, hash].map(|slot| slot.value.and_then(Member::text));
        let is_given = content.is_given || edits.is_given;
        match &path {
            Some((path, _)) if content.is_given && edits.is_given => {
                self.findings
                    .push_about(ProposalCode::ContentAndEdits, span, path);
            }
            Some((path, _)) if !is_given => {
                self.findings
                    .push_about(ProposalCode::NoContent, span, path);
            }
            None if !is_given => {
                self.findings
                    .push_about(ProposalCode::MissingKey, span, content.key);
            }
            Some(_) | None => {}
        }
        let change = content.value.or(edits.value).map(Member::change);
        let write = |((path, base_sha256), change)| Write {
            path,
            base_sha256,
            change,
        };
        Ok(path.zip(hash).zip(change).map(write))
    }

    /// edits = `[` edit (`,` edit)* `]`
    fn edits(&mut self) -> Result<Option<Member<'t>>, Stop> {
        let (edits, span) = self.list("edits", Self::edit)?;
        let edits: Option<Vec<Edit<'t>>> = edits.into_iter().collect();
        Ok(edits.map(|edits| Member::Edits(edits, span)))
    }

    /// edit = `{` `search` string, `replace` string `}`, in any order
    fn edit(&mut self, opening: &Token<'t>) -> Result<Option<Edit<'t>>, Stop> {
        if opening.is != Is::Sign('{') {
            return Err(self.wrong_type(opening, "edits"));
        }
        let (slots, _) = self.members(opening, ["search", "replace"], Self::string)?;
        let [search, replace] = slots.map(|slot| slot.value);
        Ok(search
            .zip(replace)
            .map(|((search, _), (replace, _))| Edit { search, replace }))
    }

    /// The value of `key`: its items, `None` for each that cannot be used, and its position.
    fn list<V>(
        &mut self,
        key: &str,
        item: impl Fn(&mut Self, &Token<'t>) -> Result<Option<V>, Stop>,
    ) -> Result<(Vec<Option<V>>, Span), Stop> {
        let opening = self.next()?;
        if opening.is != Is::Sign('[') {
            return Err(self.wrong_type(&opening, key));
        }
        let mut items = Vec::new();
        let mut token = self.next()?;
        while token.is != Is::Sign(']') {
            items.push(item(self, &token)?);
            token = self.next()?;
            if token.is == Is::Sign(',') {
                token = self.next()?;
                if token.is == Is::Sign(']') {
                    return Err(self.unexpected(token));
                }
            } else if token.is != Is::Sign(']') {
                return Err(self.unexpected(token));
            }
        }
        Ok((items, opening.span.start..token.span.end))
    }

    /// The rest of an object after its opening brace: each of `keys` exactly once, [`CHANGES`] at most once,
    /// and no others.
    fn members<V, const N: usize>(
        &mut self,
        opening: &Token<'t>,
        keys: [&'static str; N],
        read: impl Fn(&mut Self, &'static str) -> Result<Option<V>, Stop>,
    ) -> Result<([Slot<V>; N], Span), Stop> {
        let mut slots = keys.map(|key| Slot {
            key,
            is_given: false,
            value: None,
        });
        let mut token = self.next()?;
        while token.is != Is::Sign('}') {
            let Is::Text(name) = &token.is else {
                return Err(self.unexpected(token));
            };
            self.sign(':')?;
            match slots.iter_mut().find(|slot| slot.key == name) {
                Some(slot) => {
                    if std::mem::replace(&mut slot.is_given, true) {
                        self.findings
                            .push(ProposalCode::DuplicateKey, token.span, None);
                    }
                    slot.value = read(self, slot.key)?;
                }
                None => self.unknown(token.span)?,
            }
            token = self.next()?;
            if token.is == Is::Sign(',') {
                token = self.next()?;
                if token.is == Is::Sign('}') {
                    return Err(self.unexpected(token));
                }
            } else if token.is != Is::Sign('}') {
                return Err(self.unexpected(token));
            }
        }
        let span = opening.span.start..token.span.end;
        for Slot { key, .. } in slots
            .iter()
            .filter(|slot| !slot.is_given && !CHANGES.contains(&slot.key))
        {
            self.findings
                .push_about(ProposalCode::MissingKey, span.clone(), key);
        }
        Ok((slots, span))
    }

    /// An unknown key. Reading continues after a simple value.
    fn unknown(&mut self, key: Span) -> Result<(), Stop> {
        self.findings.push(ProposalCode::UnknownKey, key, None);
        match self.next()?.is {
            Is::Text(_) | Is::Scalar => Ok(()),
            Is::Sign(_) | Is::End => Err(Stop),
        }
    }

    /// The string value of `key`. A value of another type is reported; if it is not a simple value,
    /// reading ends.
    fn string(&mut self, key: &str) -> Result<Option<Text<'t>>, Stop> {
        let token = self.next()?;
        match token.is {
            Is::Text(text) => Ok(Some((text, token.span))),
            Is::Scalar => {
                self.findings
                    .push_about(ProposalCode::WrongType, token.span, key);
                Ok(None)
            }
            Is::Sign(_) | Is::End => Err(self.wrong_type(&token, key)),
        }
    }

    fn sign(&mut self, sign: char) -> Result<(), Stop> {
        let token = self.next()?;
        if token.is == Is::Sign(sign) {
            Ok(())
        } else {
            Err(self.unexpected(token))
        }
    }

    fn next(&mut self) -> Result<Token<'t>, Stop> {
        self.tokens
            .next()
            .map_err(|(code, span)| self.stop(code, span))
    }

    fn stop(&mut self, code: ProposalCode, span: Span) -> Stop {
        self.findings.push(code, span, None);
        Stop
    }

    fn unexpected(&mut self, token: Token<'t>) -> Stop {
        let code = if token.is == Is::End {
            ProposalCode::CutOff
        } else {
            ProposalCode::Syntax
        };
        self.stop(code, token.span)
    }

    fn wrong_type(&mut self, token: &Token<'t>, key: &str) -> Stop {
        match token.is {
            Is::End => self
                .findings
                .push(ProposalCode::CutOff, token.span.clone(), None),
            Is::Sign(':' | ',' | '}' | ']') => {
                self.findings
                    .push(ProposalCode::Syntax, token.span.clone(), None);
            }
            Is::Sign(_) | Is::Text(_) | Is::Scalar => {
                self.findings
                    .push_about(ProposalCode::WrongType, token.span.clone(), key);
            }
        }
        Stop
    }

    /// Checks each file, and all files together.
    fn judge(&mut self, writes: Vec<Write<'t>>, limits: &Limits) -> Vec<FileWrite<'t>> {
        let mut paths = HashSet::new();
        let mut total = 0_usize;
        let mut judged = Vec::with_capacity(writes.len());
        for Write {
            path: (path, path_span),
            base_sha256: (base_sha256, _),
            change: (change, span),
        } in writes
        {
            let (bytes, [is_empty, is_vague]) = (change.bytes(), lacks(&change));
            total = total.saturating_add(bytes);
            let faults = [
                (path.is_empty(), ProposalCode::EmptyPath, &path_span),
                (
                    !paths.insert(path.clone()),
                    ProposalCode::DuplicatePath,
                    &path_span,
                ),
                (is_empty, ProposalCode::EmptyEdits, &span),
                (is_vague, ProposalCode::EmptySearch, &span),
                (
                    change.texts().any(|text| text.contains('\0')),
                    ProposalCode::BinaryContent,
                    &span,
                ),
                (bytes > limits.file_bytes, ProposalCode::FileTooLarge, &span),
            ];
            for (_, code, span) in faults.iter().filter(|(is_fault, ..)| *is_fault) {
                self.findings.push_about(*code, (*span).clone(), &path);
            }
            judged.push(FileWrite {
                path,
                base_sha256,
                change,
            });
        }
        if total > limits.total_bytes {
            self.findings
                .push(ProposalCode::ProposalTooLarge, 0..0, None);
        }
        judged
    }
}

/// Whether there is no edit at all, and whether one searches for nothing.
fn lacks(change: &Change<'_>) -> [bool; 2] {
    match change {
        Change::Content(_) => [false, false],
        Change::Edits(edits) => [
            edits.is_empty(),
            edits.iter().any(|edit| edit.search.is_empty()),
        ],
    }
}
