//! A terminal of any width: what stands on its screen, with names for its colours.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::scenes::program::below;

/// More lines than any of the tests prints.
const ROWS: NonZeroU16 = NonZeroU16::new(120).unwrap();

/// A terminal with a program on it, whose standard output and standard error it is.
pub struct Terminal {
    screen: vt100::Parser,
    master: File,
    child: Child,
}

impl Terminal {
    /// Starts `command` on a terminal of so many columns.
    pub fn start(mut command: Command, columns: u16) -> io::Result<Self> {
        let (master, slave, screen) = open(columns)?;
        command
            .env("TERM", "xterm-256color")
            .stdout(slave.try_clone()?)
            .stderr(Stdio::from(slave));
        let child = command.spawn()?;
        Ok(Self {
            screen,
            master,
            child,
        })
    }

    /// Starts `command` with a person at the terminal: it is standard input, too, and typed keys can be signals.
    pub fn with_keyboard(command: &Command, columns: u16) -> io::Result<Self> {
        let (master, slave, screen) = open(columns)?;
        let child = of_its_own(command)
            .stdin(slave.try_clone()?)
            .stdout(slave.try_clone()?)
            .stderr(Stdio::from(slave))
            .spawn()?;
        Ok(Self {
            screen,
            master,
            child,
        })
    }

    /// What a person types; `\x03` is Ctrl-C.
    pub fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Takes in what the program prints until the screen shows `text`; whether it ever did.
    pub fn wait_for(&mut self, text: &str) -> bool {
        while !self.lines().iter().any(|line| line.contains(text)) {
            if !self.take_in() {
                return false;
            }
        }
        true
    }

    /// Reads output until `text` is the last thing on the screen: the program now waits for input.
    pub fn wait_to_be_asked(&mut self, text: &str) -> bool {
        while !self.lines().last().is_some_and(|line| line.ends_with(text)) {
            if !self.take_in() {
                return false;
            }
        }
        true
    }

    /// Takes in all that the program prints; its exit code.
    pub fn finish(&mut self) -> io::Result<Option<i32>> {
        while self.take_in() {}
        let ended = self.child.wait()?;
        // A program that writes and ends between two looks of the kernel at its terminal makes it
        // answer EIO although something is left. Once the program is gone, the next read has it.
        while self.take_in() {}
        Ok(ended.code())
    }

    /// Ends the program.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.finish().map(drop)
    }

    /// The end of a terminal is an error (EIO) once nobody has it open.
    fn take_in(&mut self) -> bool {
        let mut bytes = [0; 4096];
        match self.master.read(&mut bytes) {
            Ok(count) if count > 0 => {
                self.screen.process(bytes.get(..count).unwrap_or_default());
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(_) | Err(_) => false,
        }
    }

    /// The screen as a person sees it: a long line stands on several.
    pub fn lines(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let (_, columns) = screen.size();
        trimmed(
            screen
                .rows(0, columns.get())
                .map(|row| row.trim_end().to_owned())
                .collect(),
        )
    }

    /// The lines of the screen with `‹green›…‹/›` around styled text.
    pub fn styled_lines(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let (rows, columns) = screen.size();
        let row = |row| {
            let cells = (0..columns.get()).filter_map(|column| screen.cell(row, column));
            styled(cells.filter(|cell| !cell.is_wide_continuation()))
        };
        trimmed((0..rows.get()).map(row).collect())
    }
}

fn open(columns: u16) -> io::Result<(File, OwnedFd, vt100::Parser)> {
    let width = NonZeroU16::new(columns).ok_or(io::ErrorKind::InvalidInput)?;
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave: OwnedFd = rustix::fs::open(
        name,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    tcsetwinsize(
        &slave,
        Winsize {
            ws_row: ROWS.get(),
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )?;
    Ok((
        File::from(master),
        slave,
        vt100::Parser::new(ROWS, width, 0),
    ))
}

/// The command as the first of a session whose terminal is its standard input, as a shell's commands are.
fn of_its_own(command: &Command) -> Command {
    // A background job's children ignore Ctrl-C, which a person's never do.
    let mut leader = below(
        [
            "setsid",
            "--ctty",
            "--wait",
            "env",
            "--default-signal=INT,QUIT",
        ],
        command,
    );
    leader.env("TERM", "xterm-256color");
    leader
}

fn trimmed(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn styled<'c>(cells: impl Iterator<Item = &'c vt100::Cell>) -> String {
    let mut line = String::new();
    let mut current = String::new();
    for cell in cells {
        let style = style(cell);
        if style != current {
            line.push_str(if current.is_empty() { "" } else { "‹/›" });
            line.push_str(&if style.is_empty() {
                String::new()
            } else {
                format!("‹{style}›")
            });
            current = style;
        }
        line.push_str(if cell.has_contents() {
            cell.contents()
        } else {
            " "
        });
    }
    let end = if current.is_empty() { "" } else { "‹/›" };
    format!("{line}{end}").trim_end().to_owned()
}

fn style(cell: &vt100::Cell) -> String {
    let colour = match cell.fgcolor() {
        vt100::Color::Default => None,
        vt100::Color::Idx(1 | 9) => Some("red".to_owned()),
        vt100::Color::Idx(2 | 10) => Some("green".to_owned()),
        vt100::Color::Idx(3 | 11) => Some("yellow".to_owned()),
        vt100::Color::Idx(4 | 12) => Some("blue".to_owned()),
        other @ (vt100::Color::Idx(_) | vt100::Color::Rgb(..)) => Some(format!("{other:?}")),
    };
    let bold = cell.bold().then(|| "bold".to_owned());
    let dim = cell.dim().then(|| "dim".to_owned());
    [bold, dim, colour]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}
