//! The strict JSON write proposal of S2 §4.2: one object with `summary` and `writes`, nothing before, behind or
//! besides.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::Span;
use crate::code::{Wording, codes};
use crate::diagnostic::{Errors, Findings};
use crate::json::{BLANKS, Is, Token, Tokens};

/// What a model proposes to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal<'t> {
    /// What the model says it did.
    pub summary: Cow<'t, str>,
    /// At least one file, no path twice.
    pub writes: Vec<FileWrite<'t>>,
}

/// The full new content of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite<'t> {
    /// The path as the model wrote it: not yet judged.
    pub path: Cow<'t, str>,
    /// The hash of the content that the model believes to replace: 64 lower-case hex digits.
    pub base_sha256: Cow<'t, str>,
    /// The whole new content.
    pub content: Cow<'t, str>,
}

/// How large a proposal may be (S2 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of one file's content.
    pub file_bytes: usize,
    /// The most bytes of all contents together.
    pub total_bytes: usize,
}

impl Default for Limits {
    /// 200 KB a file and 500 KB in all, a KB being 1,024 bytes.
    fn default() -> Self {
        Self { file_bytes: 200 * 1024, total_bytes: 500 * 1024 }
    }
}

codes! {
    /// What makes a proposal unusable.
    ProposalCode {
        /// Bytes that are not UTF-8.
        InvalidUtf8 = "invalid-utf8",
        /// The object stands in a Markdown fence.
        MarkdownFence = "markdown-fence",
        /// Not JSON.
        Syntax = "syntax",
        /// The text ends before the object does.
        CutOff = "cut-off",
        /// Something behind the object.
        TrailingData = "trailing-data",
        /// `NaN` or an infinity, which JSON has not.
        NotANumber = "not-a-number",
        /// A string with a raw control character, an unknown escape or half a surrogate pair.
        BadString = "bad-string",
        /// A value of another type than is due.
        WrongType = "wrong-type",
        /// A key that is not in the schema.
        UnknownKey = "unknown-key",
        /// A key of the schema that is not there.
        MissingKey = "missing-key",
        /// The same key twice in one object.
        DuplicateKey = "duplicate-key",
        /// No file at all.
        EmptyWrites = "empty-writes",
        /// A file without a path.
        EmptyPath = "empty-path",
        /// The same path twice.
        DuplicatePath = "duplicate-path",
        /// Not 64 lower-case hex digits.
        BadSha256 = "bad-sha256",
        /// A content over the limit of a file.
        FileTooLarge = "file-too-large",
        /// Contents over the limit of a proposal.
        ProposalTooLarge = "proposal-too-large",
    }
}

/// Reads a proposal. A mistake of syntax ends the reading; all others are reported together.
pub fn parse<'t>(bytes: &'t [u8], limits: &Limits) -> Result<Proposal<'t>, Errors<ProposalCode>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Errors::invalid_utf8(ProposalCode::InvalidUtf8, bytes, error))?;
    let mut reader = Reader { tokens: Tokens::new(text), findings: Findings::default() };
    match reader.whole(text, limits) {
        Ok(proposal) if reader.findings.is_empty() => Ok(proposal),
        Ok(_) | Err(Stop) => Err(Errors::new(text, reader.findings, Vec::new())),
    }
}

/// The reading cannot go on; why has been reported.
struct Stop;

struct Reader<'t> {
    tokens: Tokens<'t>,
    findings: Findings<ProposalCode>,
}

/// A string and its place.
type Text<'t> = (Cow<'t, str>, Span);

/// What stands behind a key of the proposal.
enum Value<'t> {
    Summary(Text<'t>),
    Writes(Vec<[Text<'t>; 3]>),
}

impl<'t> Reader<'t> {
    /// proposal = `{` `summary` string, `writes` list `}`, in any order
    fn whole(&mut self, text: &str, limits: &Limits) -> Result<Proposal<'t>, Stop> {
        let blanks = text.len() - text.trim_start().len();
        if text.trim_start().starts_with("```") {
            return Err(self.stop(ProposalCode::MarkdownFence, blanks..blanks + 3));
        }
        let values = self.object(["summary", "writes"], |reader, key| match key {
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

    fn object<V, const N: usize>(
        &mut self,
        keys: [&'static str; N],
        read: impl Fn(&mut Self, &'static str) -> Result<Option<V>, Stop>,
    ) -> Result<[Option<V>; N], Stop> {
        let opening = self.next()?;
        if opening.is != Is::Sign('{') {
            return Err(self.wrong_type(&opening, "proposal"));
        }
        self.members(&opening, keys, read)
    }

    /// The rest of an object whose brace has been read: each of `keys` once, and no other.
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

    /// A key that is not in the schema. Behind a simple value the reading goes on.
    fn unknown(&mut self, key: Span) -> Result<(), Stop> {
        self.findings.push(ProposalCode::UnknownKey, key, None);
        match self.next()?.is {
            Is::Text(_) | Is::Scalar => Ok(()),
            Is::Sign(_) | Is::End => Err(Stop),
        }
    }

    /// The string behind `key`; a value of another type is reported, and one that is not simple ends the reading.
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

    /// What each file must fulfil, and all of them together.
    fn judge(&mut self, writes: Vec<[Text<'t>; 3]>, limits: &Limits) -> Vec<FileWrite<'t>> {
        let mut paths = HashSet::new();
        let mut total = 0_usize;
        let mut judged = Vec::with_capacity(writes.len());
        for [(path, path_span), (base_sha256, hash_span), (content, content_span)] in writes {
            total = total.saturating_add(content.len());
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            let is_hash = base_sha256.len() == 64 && base_sha256.bytes().all(is_hex);
            let faults = [
                (path.is_empty(), ProposalCode::EmptyPath, &path_span),
                (!paths.insert(path.clone()), ProposalCode::DuplicatePath, &path_span),
                (!is_hash, ProposalCode::BadSha256, &hash_span),
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

impl Wording for ProposalCode {
    fn message(self, subject: &str) -> String {
        match self {
            Self::InvalidUtf8 => "the proposal is not valid UTF-8".to_owned(),
            Self::MarkdownFence => "the proposal stands in a Markdown fence".to_owned(),
            Self::Syntax => format!("`{subject}` is not JSON here"),
            Self::CutOff => "the proposal ends too early".to_owned(),
            Self::TrailingData => "there is something behind the proposal".to_owned(),
            Self::NotANumber => format!("`{subject}` is not a value of JSON"),
            Self::BadString => format!("`{subject}` may not stand in a string"),
            Self::WrongType => format!("the value of `{subject}` has the wrong type"),
            Self::UnknownKey => format!("{subject} is not a key of a proposal"),
            Self::MissingKey => format!("`{subject}` is missing"),
            Self::DuplicateKey => format!("{subject} stands twice in one object"),
            Self::EmptyWrites => "`writes` is empty".to_owned(),
            Self::EmptyPath => "a file has no path".to_owned(),
            Self::DuplicatePath => format!("`{subject}` is written twice"),
            Self::BadSha256 => format!("the `base_sha256` of `{subject}` is not 64 lower-case hex digits"),
            Self::FileTooLarge => format!("the content of `{subject}` is too large"),
            Self::ProposalTooLarge => "the contents are too large together".to_owned(),
        }
    }

    fn advice(self, _: &str) -> String {
        let advice = match self {
            Self::InvalidUtf8 => "write plain UTF-8 text",
            Self::MarkdownFence => "begin with `{` and end with `}`, without lines of backquotes",
            Self::Syntax | Self::NotANumber => "write one JSON object and nothing else",
            Self::CutOff => "write the whole object, or fewer files",
            Self::TrailingData => "end with the `}` of the object",
            Self::BadString => "escape control characters, as in `\\n`, and write surrogates in pairs",
            Self::WrongType => "`writes` is a list of objects, every other value is a string",
            Self::UnknownKey | Self::MissingKey | Self::DuplicateKey => {
                "give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`"
            }
            Self::EmptyWrites => "propose one file at least",
            Self::EmptyPath => "give the path relative to the root of the repository",
            Self::DuplicatePath => "give each file once, with its final content",
            Self::BadSha256 => {
                "give the hash of the file's present content, for a new file the hash of nothing"
            }
            Self::FileTooLarge | Self::ProposalTooLarge => "propose less at once",
        };
        advice.to_owned()
    }
}
