//! The tags around thoughts that servers leave in an answer.
//!
//! They belong to the templates of models. A server that knows the template takes the thought out of
//! the answer; one that does not, or is told not to, sends both.

/// Each opening tag and its end.
pub(crate) const TAGS: [[&str; 2]; 16] = [
    ["<think>", "</think>"],
    ["<thinking>", "</thinking>"],
    ["<thought>", "</thought>"],
    ["<thoughts>", "</thoughts>"],
    ["<reasoning>", "</reasoning>"],
    ["<reflection>", "</reflection>"],
    ["<analysis>", "</analysis>"],
    ["<seed:think>", "</seed:think>"],
    ["<mm:think>", "</mm:think>"],
    ["[THINK]", "[/THINK]"],
    ["\u{25c1}think\u{25b7}", "\u{25c1}/think\u{25b7}"],
    ["<|START_THINKING|>", "<|END_THINKING|>"],
    // The answer begins behind a second token.
    ["<|START_THINKING|>", "<|START_RESPONSE|>"],
    ["<|begin_of_thought|>", "<|end_of_thought|>"],
    ["<|channel|>analysis<|message|>", "<|channel|>final<|message|>"],
    ["<|start|>assistant<|channel|>analysis<|message|>", "<|channel|>final<|message|>"],
];

/// Tokens that end a turn. Servers with another template than the model's leave them in the answer.
pub(crate) const TURN_ENDS: &str = "</s> <eos> <end_of_turn> <|end|> <|eot_id|> <|return|> <|im_end|> <|endoftext|> \
                                    <|end_of_text|> <|END_RESPONSE|> <\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>";

/// One of [`TAGS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    opening: &'static str,
    end: &'static str,
    pub(crate) ends: bool,
}

impl Tag {
    pub(crate) fn as_str(self) -> &'static str {
        if self.ends { self.end } else { self.opening }
    }

    /// Two tags of one pair, of which this is the end.
    pub(crate) fn closes(self, opening: Self) -> bool {
        self.ends && self.end == opening.end
    }
}

/// The tag that `rest` begins with.
pub(crate) fn at(rest: &[u8]) -> Option<Tag> {
    let [first, ..] = rest else { return None };
    if !matches!(first, b'<' | b'[' | 0xe2) {
        return None;
    }
    let begins = |[opening, end]: [&'static str; 2]| {
        let found = [opening, end].into_iter().position(|tag| rest.starts_with(tag.as_bytes()))?;
        Some(Tag { opening, end, ends: found == 1 })
    };
    TAGS.into_iter().find_map(begins)
}
