//! Names of baselines, and the folders that they stand in.
//!
//! A name is what a user calls a baseline: a branch, a version, a ticket. Invariant: two different names never share a folder,
//! not even on a disk that does not tell `Main` from `main`, and no name leads out of the store.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::Sha256Hex;

/// More is no name that anybody types.
const LONGEST: usize = 1_000;

/// File systems allow 255 bytes; temporary names and a person's eye want less.
const LONGEST_FOLDER: usize = 120;

/// What is kept of a name whose folder would be too long, before its hash.
const KEPT: usize = 40;

/// What no escape sequence begins with, because `h` is no hexadecimal digit: the mark before a hash.
const HASH_MARK: &str = "%h";

/// Names that Windows gives to devices, with any extension.
const DEVICES: [&str; 6] = ["aux", "com", "con", "lpt", "nul", "prn"];

/// What a user calls a baseline: not empty, no control characters, at most 1,000 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BaselineName(String);

/// A text that cannot be a baseline's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing, or blanks only.
    #[error("a baseline's name must not be empty")]
    Empty,
    /// It would spoil a terminal or a list.
    #[error("a baseline's name must not hold control characters such as line ends")]
    ControlCharacter,
    /// Longer than anybody means.
    #[error("a baseline's name must not be longer than {LONGEST} bytes")]
    TooLong,
}

impl BaselineName {
    /// The name where the user gives none.
    pub const DEFAULT: &'static str = "main";

    /// As the user wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder that holds it, relative to the store.
    #[must_use]
    pub(super) fn folder(&self) -> String {
        folder_of(&self.0)
    }

    /// The name whose folder this is; `None` for a folder of ours that holds something else, or whose name was too long to be
    /// kept.
    pub(super) fn of_folder(folder: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(folder.len());
        let mut rest = folder;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            if letter == '%' {
                bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                rest = &rest[2..];
            } else {
                bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        let name: Self = String::from_utf8(bytes).ok()?.parse().ok()?;
        (name.folder() == folder).then_some(name)
    }
}

impl Default for BaselineName {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl fmt::Display for BaselineName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.0)
    }
}

impl FromStr for BaselineName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.trim().is_empty() {
            Err(NameError::Empty)
        } else if text.contains(char::is_control) {
            Err(NameError::ControlCharacter)
        } else if text.len() > LONGEST {
            Err(NameError::TooLong)
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl TryFrom<String> for BaselineName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<BaselineName> for String {
    fn from(name: BaselineName) -> Self {
        name.0
    }
}

/// A folder's name for any text: lower-case letters, digits, `-`, `_` and inner dots stand for themselves, every other byte for
/// `%` and two lower-case hexadecimal digits. So nothing depends on letter case, and nothing begins with a dot.
pub(super) fn folder_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let stem = text.split('.').next().unwrap_or_default();
    let is_device = DEVICES.iter().any(|device| {
        stem.strip_prefix(device).is_some_and(|rest| rest.is_empty() || rest.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let mut folder = String::with_capacity(bytes.len());
    for (index, &byte) in bytes.iter().enumerate() {
        let outer = index == 0 || index + 1 == bytes.len();
        let plain = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => !(is_device && index == 0),
            b'.' => !outer,
            _ => false,
        };
        if plain {
            folder.push(char::from(byte));
        } else {
            folder.push_str(&format!("%{byte:02x}"));
        }
    }
    if folder.len() > LONGEST_FOLDER {
        folder.truncate(KEPT); // ASCII only, so no letter is cut.
        folder.push_str(HASH_MARK);
        folder.push_str(Sha256Hex::of_bytes(bytes).as_str());
    }
    folder
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> BaselineName {
        text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    #[test]
    fn plain_names_stand_for_themselves() {
        for text in ["main", "v1.2.3", "feature_x-2"] {
            assert_eq!(name(text).folder(), text);
        }
    }

    #[test]
    fn slashes_dots_and_case_twins_are_safe() {
        assert_eq!(name("feature/x").folder(), "feature%2fx");
        assert_eq!(name("..").folder(), "%2e%2e");
        assert_eq!(name(".").folder(), "%2e");
        assert_eq!(name("../../etc").folder(), "%2e.%2f..%2fetc");
        assert_eq!(name(r"a\b").folder(), "a%5cb");
        assert_eq!(name("Main").folder(), "%4dain");
        assert_eq!(name("%4dain").folder(), "%254dain");
        assert_eq!(name("con").folder(), "%63on");
        assert_eq!(name("com1.txt").folder(), "%63om1.txt");
        assert_eq!(name("console").folder(), "console");
        let folders: BTreeSet<_> =
            ["main", "Main", "MAIN", "%4dain", "%4Dain"].map(|text| name(text).folder().to_lowercase()).into();
        assert_eq!(folders.len(), 5);
    }

    #[test]
    fn very_long_names_get_short_folders_that_differ() {
        let (one, two) = ("x".repeat(1_000), format!("{}y", "x".repeat(999)));
        assert!(name(&one).folder().len() <= LONGEST_FOLDER);
        assert_ne!(name(&one).folder(), name(&two).folder());
        assert_eq!(BaselineName::of_folder(&name(&one).folder()), None);
    }

    #[test]
    fn texts_that_cannot_be_names_are_refused_with_the_reason() {
        for (text, error) in [
            ("", NameError::Empty),
            (" \t", NameError::Empty),
            ("a\nb", NameError::ControlCharacter),
            ("\u{1b}[31m", NameError::ControlCharacter),
            (&"x".repeat(1_001), NameError::TooLong),
        ] {
            assert_eq!(text.parse::<BaselineName>(), Err(error));
        }
    }

    #[test]
    fn name_with_forbidden_letters_in_a_file_is_refused() {
        assert!(serde_json::from_str::<BaselineName>(r#""a\nb""#).is_err());
    }

    proptest! {
        #[test]
        fn every_name_comes_back_from_its_folder_and_stays_in_the_store(text in "[^\\p{Cc}]{1,30}") {
            prop_assume!(!text.trim().is_empty());
            let name = name(&text);
            let folder = name.folder();
            prop_assert!(folder.len() <= LONGEST_FOLDER && !folder.starts_with('.') && !folder.ends_with('.'));
            prop_assert_eq!(folder.to_lowercase(), folder.clone());
            let parts: Vec<_> = Path::new(&folder).components().collect();
            prop_assert!(matches!(parts[..], [Component::Normal(_)]));
            if !folder.contains(HASH_MARK) {
                prop_assert_eq!(BaselineName::of_folder(&folder), Some(name));
            }
        }
    }
}
