//! Colours by role. No other module names a colour.

use anstyle::{AnsiColor, Style};

/// A verb of progress, as cargo prints it.
pub const STATUS: Style = AnsiColor::BrightGreen.on_default().bold();
/// The word `error`, and what failed.
pub const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
/// The word `warning`, and what deserves a look.
pub const WARNING: Style = AnsiColor::BrightYellow.on_default().bold();
/// What is as it should be.
pub const GOOD: Style = AnsiColor::BrightGreen.on_default();
/// Help, and names that can be typed.
pub const HELP: Style = AnsiColor::BrightCyan.on_default().bold();
/// The head of a table.
pub const HEADING: Style = Style::new().bold();
/// What is there for completeness.
pub const QUIET: Style = Style::new().dimmed();

/// Wraps a text in a role.
#[must_use]
pub fn paint(role: Style, text: &str) -> String {
    format!("{role}{text}{role:#}")
}
