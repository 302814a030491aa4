//! Calls user code and turns its panic into a text.
//!
//! Only panics of the calling thread within the call are kept from standard error; every other panic goes to the hook
//! that was there before.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// `None` outside a call, else what the hook saw within it.
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls user code. `Err` is its panic's message and place.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    // Built to abort (`-C panic=abort`), nothing can be caught: then at least the usual message is printed.
    if cfg!(panic = "abort") {
        return Ok(call());
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !keep(info) {
                previous(info);
            }
        }));
    });
    let outer = SEEN.replace(Some(String::new()));
    // What the call leaves half done is the user's own state, or dropped with the request.
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    let seen = SEEN.replace(outer).unwrap_or_default();
    result.map_err(|payload| if seen.is_empty() { text(&*payload) } else { seen })
}

/// Notes a panic of a thread that is within [`caught`].
fn keep(info: &PanicHookInfo<'_>) -> bool {
    SEEN.with_borrow_mut(|seen| match seen {
        Some(seen) => {
            *seen = match info.location() {
                Some(place) => format!("{} ({}:{})", text(info.payload()), place.file(), place.line()),
                None => text(info.payload()),
            };
            true
        }
        None => false,
    })
}

fn text(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a panic without a message".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_its_message_and_place() {
        let line = line!() + 1;
        let told = caught(|| panic!("no {}", "fixture")).expect_err("it panics");
        assert_eq!(told, format!("no fixture ({}:{line})", file!()));
    }

    #[test]
    fn panic_without_text_is_told_as_such() {
        let told = caught(|| panic::panic_any(7)).expect_err("it panics");
        assert!(told.starts_with("a panic without a message ("), "{told}");
        assert!(caught(|| panic::resume_unwind(Box::new("no hook"))).is_err_and(|told| told == "no hook"));
    }

    #[test]
    fn nested_calls_keep_their_own_panics() {
        let outer = caught(|| {
            let inner = caught(|| panic!("inner"));
            assert!(inner.is_err_and(|told| told.starts_with("inner (")));
            panic!("outer")
        });
        let outer: Result<(), String> = outer;
        assert!(outer.is_err_and(|told| told.starts_with("outer (")));
        assert_eq!(caught(|| 3), Ok(3));
    }
}
