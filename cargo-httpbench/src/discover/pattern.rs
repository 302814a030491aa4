//! Names with wildcards, as cargo takes them for `-p`, `--exclude` and `--bench`.

/// Whether a text holds a wildcard.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether the whole `name` matches: `*` any text, `?` one character, `[ab]`, `[a-z]` and `[!a]` one of a set.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    matches_at(&pattern, &name)
}

fn matches_at(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where the last `*` stands, and how much of the name it has taken. A later `*` makes going back to an earlier one needless.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
                continue;
            }
            Some('?') => {
                at += 1;
                read += 1;
                continue;
            }
            Some('[') => {
                if let Some(length) = set_length(&pattern[at..])
                    && set_holds(&pattern[at + 1..at + length - 1], name[read])
                {
                    at += length;
                    read += 1;
                    continue;
                }
            }
            Some(letter) if *letter == name[read] => {
                at += 1;
                read += 1;
                continue;
            }
            _ => {}
        }
        let Some((star_at, taken)) = star else { return false };
        star = Some((star_at, taken + 1));
        at = star_at + 1;
        read = taken + 1;
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// The length of a set with its brackets. A `]` that comes first belongs to the set.
fn set_length(pattern: &[char]) -> Option<usize> {
    let first = if pattern.get(1) == Some(&'!') { 2 } else { 1 };
    pattern.iter().skip(first + 1).position(|letter| *letter == ']').map(|at| at + first + 2)
}

fn set_holds(set: &[char], letter: char) -> bool {
    let (set, wanted) = match set.split_first() {
        Some(('!', rest)) => (rest, false),
        _ => (set, true),
    };
    let mut at = 0;
    let mut holds = false;
    while at < set.len() {
        if set.get(at + 1) == Some(&'-') && at + 2 < set.len() {
            holds |= (set[at]..=set[at + 2]).contains(&letter);
            at += 3;
        } else {
            holds |= set[at] == letter;
            at += 1;
        }
    }
    holds == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_in_a_shell() {
        for (pattern, name, matched) in [
            ("shop", "shop", true),
            ("shop", "shops", false),
            ("shop-*", "shop-api", true),
            ("*", "", true),
            ("*-api", "shop-api", true),
            ("*-a*i", "a-b-a-xi", true),
            ("s?op", "shop", true),
            ("s?op", "sop", false),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a-c]x", "dx", true),
            ("[]]x", "]x", true),
            ("*[0-9]", "api2", true),
            ("[a", "[a", false),
        ] {
            assert_eq!(matches(pattern, name), matched, "{pattern} {name}");
        }
    }
}
