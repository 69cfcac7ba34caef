//! Output of programs: the colours stay, everything else that would move a cursor goes.

use anstyle::{Ansi256Color, AnsiColor, Color, Effects, RgbColor, Style};
use anstyle_lossy::palette::VGA;
use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

use crate::text::plain;

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// Classes of the style sheet; empty for plain text.
    pub(crate) class: String,
    pub(crate) text: String,
}

/// Reads a text with escape sequences (ECMA-48). Styles become classes; other sequences are left out. A carriage
/// return begins its line again, as on a terminal, so that a progress bar shows its last state.
pub(crate) fn spans(text: &str) -> Vec<Span> {
    let mut screen = Screen::default();
    let mut parser = Parser::<DefaultCharAccumulator>::new();
    text.bytes()
        .for_each(|byte| parser.advance(&mut screen, byte));
    screen.flush();
    let Screen { mut done, line, .. } = screen;
    done.extend(line);
    let shown = |span: Span| Span {
        text: plain(&span.text).into_owned(),
        ..span
    };
    done.into_iter().map(shown).collect()
}

#[derive(Default)]
struct Screen {
    done: Vec<Span>,
    /// The unfinished line.
    line: Vec<Span>,
    open: String,
    style: Style,
    /// Whether the next character begins the line again.
    returned: bool,
}

impl Screen {
    fn flush(&mut self) {
        if !self.open.is_empty() {
            let text = std::mem::take(&mut self.open);
            self.line.push(Span {
                class: classes(self.style),
                text,
            });
        }
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        if std::mem::take(&mut self.returned) {
            self.line.clear();
            self.open.clear();
        }
        self.open.push(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.returned = false;
                self.open.push('\n');
                self.flush();
                self.done.append(&mut self.line);
            }
            b'\r' => self.returned = true,
            b'\t' => self.open.push('\t'),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, _intermediates: &[u8], ignore: bool, action: u8) {
        if action == b'm' && !ignore {
            self.flush();
            let codes: Vec<u16> = params.iter().flatten().copied().collect();
            self.style = styled(self.style, &codes);
        }
    }
}

/// Select Graphic Rendition. No codes mean 0.
fn styled(style: Style, codes: &[u16]) -> Style {
    let mut style = if codes.is_empty() {
        Style::new()
    } else {
        style
    };
    let mut codes = codes.iter().copied();
    while let Some(code) = codes.next() {
        let (fg, bg) = (style.get_fg_color(), style.get_bg_color());
        let effects = style.get_effects();
        style = match code {
            0 => Style::new(),
            1 => style.bold(),
            2 => style.dimmed(),
            3 => style.italic(),
            4 => style.underline(),
            22 => style.effects(effects.remove(Effects::BOLD | Effects::DIMMED)),
            23 => style.effects(effects.remove(Effects::ITALIC)),
            24 => style.effects(effects.remove(Effects::UNDERLINE)),
            30..=37 => style.fg_color(basic(code - 30).or(fg)),
            38 => style.fg_color(extended(&mut codes).or(fg)),
            39 => style.fg_color(None),
            40..=47 => style.bg_color(basic(code - 40).or(bg)),
            48 => style.bg_color(extended(&mut codes).or(bg)),
            49 => style.bg_color(None),
            90..=97 => style.fg_color(basic(code - 90 + 8).or(fg)),
            100..=107 => style.bg_color(basic(code - 100 + 8).or(bg)),
            _ => style,
        };
    }
    style
}

fn classes(style: Style) -> String {
    let effects = [
        (Effects::BOLD, "bold"),
        (Effects::DIMMED, "dim"),
        (Effects::ITALIC, "italic"),
        (Effects::UNDERLINE, "underline"),
    ];
    let is_set = |effect| style.get_effects().contains(effect);
    let mut classes: Vec<String> = effects
        .into_iter()
        .filter(|(effect, _)| is_set(*effect))
        .map(|(_, class)| class.to_owned())
        .collect();
    for (prefix, colour) in [("fg", style.get_fg_color()), ("bg", style.get_bg_color())] {
        if let Some(Color::Ansi(colour)) = colour {
            classes.push(format!("{prefix}{}", Ansi256Color::from(colour).index()));
        }
    }
    classes.join(" ")
}

fn basic(index: u16) -> Option<Color> {
    Some(Color::Ansi(
        Ansi256Color(u8::try_from(index).ok()?).into_ansi()?,
    ))
}

/// `5;N` and `2;R;G;B`, as the nearest of sixteen: the page decides how these look in light and dark.
fn extended(codes: &mut impl Iterator<Item = u16>) -> Option<Color> {
    let mut byte = || codes.next().and_then(|code| u8::try_from(code).ok());
    let colour: AnsiColor = match byte()? {
        5 => anstyle_lossy::xterm_to_ansi(Ansi256Color(byte()?), VGA),
        2 => anstyle_lossy::rgb_to_ansi(RgbColor(byte()?, byte()?, byte()?), VGA),
        _ => return None,
    };
    Some(Color::Ansi(colour))
}
