//! The name that somebody probably meant.
//!
//! Pure. It only ranks: the words around a suggestion belong to whoever makes it.

/// Below this likeness (Jaro–Winkler, 0 to 1) a suggestion confuses more than it helps.
const LIKENESS: f64 = 0.75;

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

/// At most `count` candidates that are like `word`, the best first. One that contains `word`, or lies within it, is always like it.
#[must_use]
pub fn several<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let lower = word.to_lowercase();
    let mut ranked: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (likeness(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    ranked.dedup_by_key(|(_, candidate)| *candidate);
    ranked.into_iter().take(count).map(|(_, candidate)| candidate).collect()
}

fn likeness(word: &str, candidate: &str) -> f64 {
    // Scenario names are paths (`module::function[arg]`): what is typed is often like their last part only.
    let tail = candidate.rsplit("::").next().unwrap_or(candidate);
    let tail = tail.split('[').next().unwrap_or(tail);
    let within = !word.is_empty() && !candidate.is_empty() && (candidate.contains(word) || word.contains(candidate));
    let slip = is_slip(word, candidate) || is_slip(word, tail);
    let floor = if within || slip { LIKENESS } else { 0.0 };
    strsim::jaro_winkler(word, candidate).max(strsim::jaro_winkler(word, tail)).max(floor)
}

/// Whether one letter in three was mistyped, left out, added or swapped with its neighbour; in short words one.
fn is_slip(word: &str, candidate: &str) -> bool {
    let length = word.chars().count().max(candidate.chars().count());
    length > 2 && strsim::damerau_levenshtein(word, candidate) <= length / 3
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
    fn best_comes_first_and_the_count_is_kept() {
        assert_eq!(several("page", ["pages", "page", "pge", "zzz"], 2), ["page", "pages"]);
    }
}
