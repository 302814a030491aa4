//! `{port}`, `{host}` and `{dir}` in what the user configured.

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
