//! The name that somebody probably meant.
//!
//! Pure. It only ranks: the words around a suggestion belong to whoever makes it. A wrong suggestion confuses more than none, so
//! a candidate must be within reach of a slip of the fingers, bounded by the length of the word, or contain what was typed.

/// Letters that a word needs before a candidate that contains it is meant by it. A letter or two are part of nearly everything.
const TELLING: usize = 3;

/// Letters for each of which one slip is forgiven.
const LETTERS_A_SLIP: usize = 3;

/// The candidate that is most like `word`, if any is like it at all.
///
/// ```
/// use cargo_httpbench::nearest::nearest;
///
/// assert_eq!(nearest("conections", ["duration", "connections"]), Some("connections"));
/// assert_eq!(nearest("xyz", ["duration", "connections"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    several(word, candidates, 1).pop()
}

/// At most `count` candidates that are like `word`, the best first: those that one slip in three letters turns into it, and those that
/// contain it or lie within it.
#[must_use]
pub fn several<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let lower = word.to_lowercase();
    let mut ranked: Vec<(f64, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((likeness(&lower, &candidate.to_lowercase())?, candidate)))
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    ranked.dedup_by_key(|(_, candidate)| *candidate);
    ranked.into_iter().take(count).map(|(_, candidate)| candidate).collect()
}

/// How much a candidate is like a word, from 0 to 1 (Jaro–Winkler); `None` if it is not meant.
fn likeness(word: &str, candidate: &str) -> Option<f64> {
    // Scenario names are paths (`module::function[arg]`): what is typed is often like their last part only.
    let tail = candidate.rsplit("::").next().unwrap_or(candidate);
    let tail = tail.split('[').next().unwrap_or(tail);
    let slip = is_slip(word, candidate) || is_slip(word, tail);
    (slip || is_within(word, candidate) || is_within(candidate, word))
        .then(|| strsim::jaro_winkler(word, candidate).max(strsim::jaro_winkler(word, tail)))
}

/// Whether a telling part of `whole` was typed.
fn is_within(part: &str, whole: &str) -> bool {
    part.chars().count() >= TELLING && whole.contains(part)
}

/// Whether one letter in three was mistyped, left out, added or swapped with its neighbour: one in words of up to four letters, two from
/// five on.
fn is_slip(word: &str, candidate: &str) -> bool {
    let length = word.chars().count().max(candidate.chars().count());
    length > 2 && strsim::damerau_levenshtein(word, candidate) <= (length + 1) / LETTERS_A_SLIP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_part_of_a_path_is_compared_too() {
        assert_eq!(nearest("serch", ["todo::search[1]", "todo::list"]), Some("todo::search[1]"));
    }

    #[test]
    fn swapped_letters_of_a_short_word_are_forgiven() {
        assert_eq!(nearest("bni", ["bin", "args"]), Some("bin"));
        assert_eq!(nearest("ax", ["bx"]), None);
    }

    #[test]
    fn what_is_not_within_reach_is_not_suggested() {
        assert_eq!(nearest("a", ["cargo-httpbench", "todo-axum"]), None);
        assert_eq!(nearest("ab", ["abacus"]), None);
        assert_eq!(nearest("bogus", ["rounds", "bench", "bin"]), None);
        assert_eq!(nearest("bogus", ["bonus"]), Some("bonus"));
        assert_eq!(nearest("limts", ["server", "limit"]), Some("limit"));
        assert_eq!(nearest("axum", ["cargo-httpbench", "todo-axum"]), Some("todo-axum"));
    }

    #[test]
    fn best_comes_first_and_the_count_is_kept() {
        assert_eq!(several("page", ["pages", "page", "pge", "zzz"], 2), ["page", "pages"]);
    }
}
