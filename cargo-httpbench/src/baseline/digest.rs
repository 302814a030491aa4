//! SHA-256, as the lower-case hexadecimal text that files, messages and file names share.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Read at a time, so that memory does not grow with an executable.
pub(super) const BLOCK: usize = 256 * 1024;

/// A SHA-256 sum: 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Hex(String);

/// A text that is no SHA-256 sum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no SHA-256 sum of 64 lower-case hexadecimal digits")]
pub struct DigestError(String);

impl Sha256Hex {
    /// The sum of some bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Summer::default().with(bytes).finish()
    }

    /// The sum of texts, each with its length, so that no two lists have one sum by their borders alone.
    #[must_use]
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut summer = Summer::default();
        for text in texts {
            summer.add(&(text.len() as u64).to_le_bytes());
            summer.add(text.as_bytes());
        }
        summer.finish()
    }

    /// The sum of a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut summer = Summer::default();
        let mut block = vec![0; BLOCK];
        loop {
            match file.read(&mut block) {
                Ok(0) => return Ok(summer.finish()),
                Ok(read) => summer.add(&block[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first digits, for messages.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.0)
    }
}

impl TryFrom<String> for Sha256Hex {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        let right = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if right { Ok(Self(text)) } else { Err(DigestError(text)) }
    }
}

impl From<Sha256Hex> for String {
    fn from(digest: Sha256Hex) -> Self {
        digest.0
    }
}

/// A sum in the making.
#[derive(Default)]
pub(super) struct Summer(Sha256);

impl Summer {
    /// Adds bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn with(mut self, bytes: &[u8]) -> Self {
        self.add(bytes);
        self
    }

    /// The sum of everything that was added.
    pub(super) fn finish(self) -> Sha256Hex {
        let digits = self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Sha256Hex(digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standard() {
        // FIPS 180-4's own example, `abc`, and the empty text.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Sha256Hex::of_bytes(b"abc").as_str(), abc);
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256Hex::of_bytes(b"").as_str(), empty);
    }

    #[test]
    fn borders_between_texts_count() {
        assert_ne!(Sha256Hex::of_texts(["ab", "c"]), Sha256Hex::of_texts(["a", "bc"]));
        assert_ne!(Sha256Hex::of_texts(["a"]), Sha256Hex::of_texts(["a", ""]));
    }

    #[test]
    fn only_64_lower_case_digits_are_a_sum() {
        for text in ["", "../x", &"A".repeat(64), &"a".repeat(63)] {
            assert!(Sha256Hex::try_from(text.to_owned()).is_err(), "{text}");
        }
        assert!(Sha256Hex::try_from("a".repeat(64)).is_ok());
    }
}
