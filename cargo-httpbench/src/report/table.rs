//! A table that fits the terminal: columns are left out by their weight, and where even the weightiest do not fit, each row
//! becomes a short list.

use std::fmt::Write;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::style::{self, paint};

/// Blank columns between two cells.
const GAP: usize = 2;

/// Where a column's texts stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// How early a column is left out when the width does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// First.
    Extra,
    /// Then these.
    Usual,
    /// Never.
    Essential,
}

/// A column's head and manners.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Above the column.
    pub(super) head: &'static str,
    /// Where its texts stand.
    pub(super) align: Align,
    /// How early it is left out.
    pub(super) weight: Weight,
}

/// A text and the role it is shown in.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// Without any colour.
    pub(super) text: String,
    /// Its role.
    pub(super) role: Style,
}

impl Cell {
    /// A text in no special role.
    #[must_use]
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), role: Style::new() }
    }

    /// A text in a role.
    #[must_use]
    pub(super) fn styled(text: impl Into<String>, role: Style) -> Self {
        Self { text: text.into(), role }
    }
}

/// Lays rows out for `width` columns of a terminal, every line indented by `GAP`.
///
/// # Panics
///
/// When a row has fewer cells than there are columns.
#[must_use]
pub(super) fn render(columns: &[Column], rows: &[Vec<Cell>], width: usize) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            rows.iter().map(|row| row[index].text.width()).max().unwrap_or(0).max(column.head.width())
        })
        .collect();
    let mut shown: Vec<usize> = (0..columns.len()).filter(|&index| has_content(rows, index)).collect();
    while shown.iter().map(|&index| widths[index] + GAP).sum::<usize>() > width {
        let lightest = shown.iter().copied().min_by_key(|&index| (columns[index].weight, std::cmp::Reverse(index)));
        match lightest {
            Some(index) if columns[index].weight != Weight::Essential => shown.retain(|&other| other != index),
            _ => return list(columns, rows),
        }
    }
    let mut text = String::new();
    let heads = columns.iter().map(|column| Cell::styled(column.head, style::HEADING)).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for &index in &shown {
            let fill = " ".repeat(widths[index] - row[index].text.width());
            let cell = paint(row[index].role, &row[index].text);
            let _ = match columns[index].align {
                Align::Left => write!(line, "{:GAP$}{cell}{fill}", ""),
                Align::Right => write!(line, "{:GAP$}{fill}{cell}", ""),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Whether any row says something in this column.
fn has_content(rows: &[Vec<Cell>], index: usize) -> bool {
    rows.iter().any(|row| !row[index].text.is_empty())
}

fn list(columns: &[Column], rows: &[Vec<Cell>]) -> String {
    let mut text = String::new();
    for row in rows {
        for (index, (column, cell)) in columns.iter().zip(row).enumerate() {
            let cell_text = paint(cell.role, &cell.text);
            let _ = match index {
                0 => writeln!(text, "{cell_text}"),
                _ if cell.text.is_empty() => Ok(()),
                _ => writeln!(text, "  {} {cell_text}", column.head),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { head: "name", align: Align::Left, weight: Weight::Essential },
        Column { head: "extra", align: Align::Right, weight: Weight::Extra },
        Column { head: "value", align: Align::Right, weight: Weight::Essential },
    ];

    fn plain(width: usize) -> String {
        let rows = [["index", "1", "12 µs"], ["search[日本]", "20", "3 ms"]]
            .map(|row| row.into_iter().map(Cell::plain).collect::<Vec<_>>());
        anstream::adapter::strip_str(&render(&COLUMNS, &rows, width)).to_string()
    }

    #[test]
    fn wide_characters_keep_the_columns_aligned() {
        assert_eq!(
            plain(80),
            "  name          extra  value\n  index             1  12 µs\n  search[日本]     20   3 ms\n"
        );
    }

    #[test]
    fn narrow_terminal_loses_the_lightest_column_first() {
        assert_eq!(plain(24), "  name          value\n  index         12 µs\n  search[日本]   3 ms\n");
    }

    #[test]
    fn very_narrow_terminal_gets_a_list() {
        assert_eq!(plain(12), "index\n  extra 1\n  value 12 µs\nsearch[日本]\n  extra 20\n  value 3 ms\n");
    }

    #[test]
    fn column_without_any_text_is_left_out() {
        let rows = [vec![Cell::plain("index"), Cell::plain(""), Cell::plain("1 s")]];
        let text = anstream::adapter::strip_str(&render(&COLUMNS, &rows, 80)).to_string();
        assert_eq!(text, "  name   value\n  index    1 s\n");
    }
}
