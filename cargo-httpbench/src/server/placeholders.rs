//! `{port}`, `{host}` and `{dir}` in what the user configured.

/// The words that are filled in.
const KNOWN: [(&str, &str); 3] = [("port", "{port}"), ("host", "{host}"), ("dir", "{dir}")];

/// The words in braces that are nearly one of ours, each with the one that was probably meant, braces included.
pub(crate) fn near_misses(text: &str) -> Vec<(&str, &'static str)> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices('{') {
        let Some(length) = text[start..].find('}') else { break };
        let word = &text[start + 1..start + length];
        let is_word = word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
        if !is_word || KNOWN.iter().any(|(known, _)| *known == word) {
            continue;
        }
        // One slip, no more, and no longer words: `{remote_host}` is nobody's `{host}`.
        let lower = word.to_lowercase();
        let slips = |known: &str| strsim::damerau_levenshtein(&lower, known);
        let meant = KNOWN.into_iter().filter(|(known, _)| slips(known) <= 1).min_by_key(|(known, _)| slips(known));
        found.extend(meant.map(|(_, braced)| (&text[start..=start + length], braced)));
    }
    found
}

/// What the placeholders stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placeholders {
    pub(super) port: u16,
    pub(super) host: String,
    pub(super) dir: String,
}

impl Placeholders {
    /// Fills in what is known. Any other `{word}` stays as it is: it may be the server's own.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let (before, from_brace) = rest.split_at(start);
            filled.push_str(before);
            let known = [("{port}", self.port.to_string()), ("{host}", self.host.clone()), ("{dir}", self.dir.clone())];
            let (length, value) = known
                .into_iter()
                .find(|(placeholder, _)| from_brace.starts_with(placeholder))
                .map_or((1, "{".to_owned()), |(placeholder, value)| (placeholder.len(), value));
            filled.push_str(&value);
            rest = &from_brace[length..];
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_fingers_are_found_and_other_words_in_braces_are_the_servers_own() {
        assert_eq!(
            near_misses("{hots}:{prot} {Port}"),
            [("{hots}", "{host}"), ("{prot}", "{port}"), ("{Port}", "{port}")]
        );
        assert_eq!(near_misses("{} {x} {name} {remote_host} {{port}} {\"a\": {port}} {host {dir}"), []);
    }

    #[test]
    fn known_placeholders_are_filled_once_and_others_stay() {
        let placeholders = Placeholders { port: 3000, host: "127.0.0.1".into(), dir: "/tmp/{port}".into() };
        let cases = [
            ("{host}:{port}", "127.0.0.1:3000"),
            ("sqlite:{dir}/a.db", "sqlite:/tmp/{port}/a.db"),
            ("{Port} {} {x} {{port}} {", "{Port} {} {x} {3000} {"),
            (r#"{"port": {port}}"#, r#"{"port": 3000}"#),
            ("", ""),
        ];
        for (text, filled) in cases {
            assert_eq!(placeholders.fill(text), filled, "{text}");
        }
    }
}
