//! From file, attribute, environment and flags to one resolved [`Settings`].

mod settings;

pub use settings::{LoadSettings, Ready, ServerSettings, Settings};
