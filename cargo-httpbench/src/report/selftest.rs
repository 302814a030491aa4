//! The table of a selftest: one row for each kind of comparison.

use super::quantity;
use super::table::{Align, Cell, Column, Weight, render};
use crate::selftest::{ArmOrder, Group, Neighbour};
use crate::style;

const COLUMNS: [Column; 8] = [
    Column { head: "server", align: Align::Left, weight: Weight::Essential },
    Column { head: "candidate", align: Align::Left, weight: Weight::Essential },
    Column { head: "comparisons", align: Align::Right, weight: Weight::Essential },
    Column { head: "regressed", align: Align::Right, weight: Weight::Essential },
    Column { head: "unchanged", align: Align::Right, weight: Weight::Usual },
    Column { head: "estimate", align: Align::Right, weight: Weight::Usual },
    Column { head: "time", align: Align::Right, weight: Weight::Usual },
    Column { head: "found from", align: Align::Right, weight: Weight::Usual },
];

/// Lays the table out for `width` columns.
#[must_use]
pub fn render_selftest(groups: &[Group], width: usize) -> String {
    let rows: Vec<Vec<Cell>> = groups.iter().map(row).collect();
    render(&COLUMNS, &rows, width)
}

fn row(group: &Group) -> Vec<Cell> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let beside = match (group.order, group.neighbour) {
        (ArmOrder::Interleaved, Neighbour::None) => "",
        (ArmOrder::Sequential, Neighbour::None) => ", one arm after the other",
        (ArmOrder::Interleaved, Neighbour::Busy) => ", beside a busy neighbour",
        (ArmOrder::Sequential, Neighbour::Busy) => ", one arm after the other, beside a busy neighbour",
    };
    let false_alarm = group.change.is_none() && group.regressed > 0;
    let regressed = group.regressed.to_string();
    vec![
        Cell::plain(group.speed.to_string()),
        Cell::plain(format!("{}{beside}", group.change)),
        Cell::plain(group.comparisons.to_string()),
        if false_alarm { Cell::styled(regressed, style::ERROR) } else { Cell::plain(regressed) },
        Cell::plain(group.unchanged.to_string()),
        Cell::plain(or_dash(group.estimated.map(|change| format!("{:+.1}%", change * 100.0)))),
        Cell::styled(or_dash(group.seconds.map(|seconds| format!("{seconds:.0} s"))), style::QUIET),
        Cell::plain(or_dash(group.smallest_found.map(quantity::percent))),
    ]
}
