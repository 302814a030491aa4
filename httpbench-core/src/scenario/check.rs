//! What an answer must be for an exchange to be good.

/// What an answer must be for an exchange to be good.
///
/// Without a status check, any status below 400 is accepted.
///
/// ```
/// use httpbench_core::Check;
///
/// let check = Check::status(200).body_contains("hits");
/// assert!(check.judge(200, b"3 hits").is_ok());
/// assert_eq!(check.judge(404, b"").unwrap_err(), "status 404, not 200");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    status: Option<u16>,
    texts: Vec<String>,
}

impl Check {
    /// The status must be exactly this.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), texts: Vec::new() }
    }

    /// The body must contain this text, byte for byte. May be called several times; all must be there.
    ///
    /// Bodies are compared as they are on the wire after chunked decoding: a compressed body does not contain its text.
    #[must_use]
    pub fn body_contains(mut self, text: impl Into<String>) -> Self {
        self.texts.push(text.into());
        self
    }

    /// Whether the engine must keep the body for [`Check::judge`].
    #[must_use]
    pub fn needs_body(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Whether the status alone is right.
    #[inline]
    #[must_use]
    pub fn accepts_status(&self, status: u16) -> bool {
        match self.status {
            Some(wanted) => status == wanted,
            None => status < 400,
        }
    }

    /// Why no answer can pass: told when a request is rendered, so that nobody measures a failure.
    pub(crate) fn contradiction(&self, is_head: bool) -> Option<String> {
        match self.status {
            // Interim answers (1xx) are never the final one; RFC 9110, section 15 ends the range at 599.
            Some(status) if !(200..=599).contains(&status) => {
                Some(format!("{status} is not the status of a final answer (200 to 599)"))
            }
            Some(204 | 304) if self.needs_body() => Some("an answer with status 204 or 304 has no body".to_owned()),
            _ if is_head && self.needs_body() => Some("an answer to HEAD has no body".to_owned()),
            _ => None,
        }
    }

    /// Judges a whole answer.
    ///
    /// # Errors
    ///
    /// What is wrong, in words. The first thing wrong is told.
    pub fn judge(&self, status: u16, body: &[u8]) -> Result<(), String> {
        if !self.accepts_status(status) {
            return Err(match self.status {
                Some(wanted) => format!("status {status}, not {wanted}"),
                None => format!("status {status}"),
            });
        }
        match self.texts.iter().find(|text| !contains(body, text.as_bytes())) {
            Some(text) => Err(format!("the body ({} bytes) does not contain {text:?}", body.len())),
            None => Ok(()),
        }
    }
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || body.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_status_check_400_and_more_is_wrong() {
        let check = Check::default();
        assert_eq!([200, 204, 304, 399].map(|status| check.judge(status, b"").is_ok()), [true; 4]);
        assert_eq!([400, 404, 500, 999].map(|status| check.judge(status, b"").is_ok()), [false; 4]);
    }

    #[test]
    fn status_check_accepts_that_status_only() {
        let check = Check::status(404);
        assert!(check.judge(404, b"").is_ok());
        assert!(check.judge(200, b"").is_err());
    }

    #[test]
    fn check_that_no_answer_can_pass_is_known_as_such() {
        for status in [0, 20, 101, 199, 600, u16::MAX] {
            assert!(Check::status(status).contradiction(false).is_some(), "{status}");
        }
        assert!(Check::status(204).body_contains("x").contradiction(false).is_some());
        assert!(Check::default().body_contains("x").contradiction(true).is_some());
        assert_eq!(Check::status(200).body_contains("x").contradiction(false), None);
    }

    #[test]
    fn every_text_must_be_in_the_body() {
        let check = Check::default().body_contains("a").body_contains("");
        assert!(check.judge(200, b"bab").is_ok());
        assert_eq!(check.judge(200, b"b"), Err("the body (1 bytes) does not contain \"a\"".to_owned()));
        assert!(check.needs_body());
    }
}
