//! Builds a proposal from tokens, by the schema. Each production reads its own tokens, and none is
//! recursive.

use std::borrow::Cow;
use std::collections::HashSet;

use super::json::{BLANKS, Is, Token, Tokens};
use super::{FileWrite, Limits, Proposal, ProposalCode};
use crate::Span;
use crate::diagnostic::{Errors, Findings};

/// Reads all of `text`.
pub(super) fn whole<'t>(text: &'t str, limits: &Limits) -> Result<Proposal<'t>, Errors<ProposalCode>> {
    let mut reader = Reader { tokens: Tokens::new(text), findings: Findings::default() };
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

/// A string and its position.
type Text<'t> = (Cow<'t, str>, Span);

/// The value of a key of the proposal.
enum Value<'t> {
    Summary(Text<'t>),
    Writes(Vec<[Text<'t>; 3]>),
}

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
        let values = self.members(&opening, ["summary", "writes"], |reader, key| match key {
            "summary" => Ok(reader.string(key)?.map(Value::Summary)),
            _ => Ok(Some(Value::Writes(reader.writes()?))),
        })?;
        let behind = self.tokens.rest().trim_start_matches(BLANKS);
        if !behind.is_empty() {
            return Err(self.stop(ProposalCode::TrailingData, text.len() - behind.len()..text.len()));
        }
        let mut proposal = Proposal { summary: Cow::Borrowed(""), writes: Vec::new() };
        for value in values.into_iter().flatten() {
            match value {
                Value::Summary((summary, _)) => proposal.summary = summary,
                Value::Writes(writes) => proposal.writes = self.judge(writes, limits),
            }
        }
        Ok(proposal)
    }

    /// writes = `[` write (`,` write)* `]`
    fn writes(&mut self) -> Result<Vec<[Text<'t>; 3]>, Stop> {
        let opening = self.next()?;
        if opening.is != Is::Sign('[') {
            return Err(self.wrong_type(&opening, "writes"));
        }
        let mut writes = Vec::new();
        let mut token = self.next()?;
        if token.is == Is::Sign(']') {
            self.findings.push(ProposalCode::EmptyWrites, opening.span.start..token.span.end, None);
            return Ok(writes);
        }
        loop {
            writes.extend(self.write(&token)?);
            match self.next()? {
                Token { is: Is::Sign(','), .. } => token = self.next()?,
                Token { is: Is::Sign(']'), .. } => return Ok(writes),
                other => return Err(self.unexpected(other)),
            }
        }
    }

    /// write = `{` `path` string, `base_sha256` string, `content` string `}`, in any order
    fn write(&mut self, opening: &Token<'t>) -> Result<Option<[Text<'t>; 3]>, Stop> {
        if opening.is != Is::Sign('{') {
            return Err(self.wrong_type(opening, "writes"));
        }
        let [path, hash, content] =
            self.members(opening, ["path", "base_sha256", "content"], Self::string)?;
        Ok(path.zip(hash).zip(content).map(|((path, hash), content)| [path, hash, content]))
    }

    /// The rest of an object after its opening brace: each of `keys` exactly once, and no others.
    fn members<V, const N: usize>(
        &mut self,
        opening: &Token<'t>,
        keys: [&'static str; N],
        read: impl Fn(&mut Self, &'static str) -> Result<Option<V>, Stop>,
    ) -> Result<[Option<V>; N], Stop> {
        let mut slots = keys.map(|key| (key, false, None));
        let mut token = self.next()?;
        while token.is != Is::Sign('}') {
            let Is::Text(name) = &token.is else { return Err(self.unexpected(token)) };
            self.sign(':')?;
            match slots.iter_mut().find(|(key, ..)| key == name) {
                Some((key, seen, value)) => {
                    if std::mem::replace(seen, true) {
                        self.findings.push(ProposalCode::DuplicateKey, token.span, None);
                    }
                    *value = read(self, key)?;
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
        for (key, ..) in slots.iter().filter(|(_, seen, _)| !seen) {
            self.findings.push_about(ProposalCode::MissingKey, opening.span.start..token.span.end, key);
        }
        Ok(slots.map(|(_, _, value)| value))
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
                self.findings.push_about(ProposalCode::WrongType, token.span, key);
                Ok(None)
            }
            Is::Sign(_) | Is::End => Err(self.wrong_type(&token, key)),
        }
    }

    fn sign(&mut self, sign: char) -> Result<(), Stop> {
        let token = self.next()?;
        if token.is == Is::Sign(sign) { Ok(()) } else { Err(self.unexpected(token)) }
    }

    fn next(&mut self) -> Result<Token<'t>, Stop> {
        self.tokens.next().map_err(|(code, span)| self.stop(code, span))
    }

    fn stop(&mut self, code: ProposalCode, span: Span) -> Stop {
        self.findings.push(code, span, None);
        Stop
    }

    fn unexpected(&mut self, token: Token<'t>) -> Stop {
        let code = if token.is == Is::End { ProposalCode::CutOff } else { ProposalCode::Syntax };
        self.stop(code, token.span)
    }

    fn wrong_type(&mut self, token: &Token<'t>, key: &str) -> Stop {
        match token.is {
            Is::End => self.findings.push(ProposalCode::CutOff, token.span.clone(), None),
            Is::Sign(':' | ',' | '}' | ']') => {
                self.findings.push(ProposalCode::Syntax, token.span.clone(), None);
            }
            Is::Sign(_) | Is::Text(_) | Is::Scalar => {
                self.findings.push_about(ProposalCode::WrongType, token.span.clone(), key);
            }
        }
        Stop
    }

    /// Checks each file, and all files together.
    fn judge(&mut self, writes: Vec<[Text<'t>; 3]>, limits: &Limits) -> Vec<FileWrite<'t>> {
        let mut paths = HashSet::new();
        let mut total = 0_usize;
        let mut judged = Vec::with_capacity(writes.len());
        for [(path, path_span), (base_sha256, _), (content, content_span)] in writes {
            total = total.saturating_add(content.len());
            let faults = [
                (path.is_empty(), ProposalCode::EmptyPath, &path_span),
                (!paths.insert(path.clone()), ProposalCode::DuplicatePath, &path_span),
                (content.contains('\0'), ProposalCode::BinaryContent, &content_span),
                (content.len() > limits.file_bytes, ProposalCode::FileTooLarge, &content_span),
            ];
            for (_, code, span) in faults.iter().filter(|(is_fault, ..)| *is_fault) {
                self.findings.push_about(*code, (*span).clone(), &path);
            }
            judged.push(FileWrite { path, base_sha256, content });
        }
        if total > limits.total_bytes {
            self.findings.push(ProposalCode::ProposalTooLarge, 0..0, None);
        }
        judged
    }
}
