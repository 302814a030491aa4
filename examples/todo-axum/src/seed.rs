//! The to-do items of a new database: the same ones every time, so that every measurement reads the same rows.

use crate::store::{NewTodo, Priority};

/// How many items a new database holds.
pub(crate) const COUNT: usize = 360;

const TASKS: [(&str, &str); 15] = [
    ("Send the invoice to", "Net 30 days. Put the order number in the subject."),
    ("Call back", "Asked about the delivery date and the discount for the second year."),
    ("Write the offer for", "Two variants, with and without installation."),
    ("Book the train to see", "Back on the same day if possible. Window seat."),
    ("Review the contract with", "Legal wants the clause on liability shortened."),
    ("Prepare the demo for", "Use the small data set. Check the projector beforehand."),
    ("Answer the support ticket of", "Happens only after an update. The log is attached."),
    ("Plan the workshop with", "Half a day, at most twelve people, somewhere with daylight."),
    ("Order spare parts for", "The blue ones. Compare prices before."),
    ("Remind", "The invoice of last month is still open."),
    ("Send the minutes to", "Decisions first, then who does what until when."),
    ("Check the backup of", "Restore one file and compare it. Write down how long it took."),
    ("Ask for feedback from", "Three questions are enough."),
    ("Update the price list for", "Round to full euros. The old list stays valid until the end of the month."),
    ("Say thank you to", "A card, not an e-mail."),
];

const PEOPLE: [&str; 24] = [
    "Alma Berg",
    "the Harbour Bakery",
    "Jonas Winter",
    "Castell & Sons",
    "Priya Nair",
    "the city library",
    "Tomás Ortega",
    "Northwind Cycles",
    "Mei Tanaka",
    "the school board",
    "Elif Kaya",
    "Hansen Shipping",
    "Samuel Osei",
    "the choir",
    "Greta Lindqvist",
    "Orchard Dental",
    "Viktor Petrov",
    "the tennis club",
    "Amina Diallo",
    "Brightside Solar",
    "Luca Moretti",
    "the landlord",
    "Nora O'Brien",
    "Pine Street Printers",
];

/// All items, in the order of their keys.
pub(crate) fn todos() -> impl Iterator<Item = (NewTodo, bool)> {
    (0..COUNT).map(|index| {
        let (task, notes) = TASKS[index % TASKS.len()];
        // 15 and 24 share a factor: without the shift, only 120 of the 360 pairs would come up, each three times.
        let person = PEOPLE[(index + index / 120) % PEOPLE.len()];
        let todo = NewTodo {
            title: format!("{task} {person}"),
            notes: notes.to_owned(),
            priority: [Priority::Normal, Priority::Low, Priority::Normal, Priority::High][index % 4],
        };
        (todo, index % 3 == 0)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_title_comes_twice() {
        let titles: BTreeSet<String> = todos().map(|(todo, _)| todo.title).collect();
        assert_eq!(titles.len(), COUNT);
    }

    #[test]
    fn every_seeded_item_would_be_accepted_from_a_client() {
        for (todo, _) in todos() {
            assert!(todo.problems().is_empty(), "{todo:?}");
        }
    }
}
