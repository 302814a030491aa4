//! What can be told of an executable by its bytes, before anybody runs it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use httpbench_core::protocol::MARKER;

use crate::cargo::{Cargo, RunCargo, StandardError};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// The name under which an executable asks for a shared standard library begins like this, after the end of another name.
const SHARED_STD: &[u8] = b"\0libstd-";

/// Whether the executable calls `httpbench_core::main()` of a version whose protocol we speak.
pub(super) fn speaks_our_protocol(path: &Path) -> Result<bool> {
    mentions(path, MARKER)
}

/// Whether the executable may be linked to the toolchain's shared standard library (`-C prefer-dynamic`).
pub(super) fn needs_shared_std(path: &Path) -> Result<bool> {
    mentions(path, SHARED_STD)
}

/// Where the toolchain keeps its shared libraries, if it can be asked.
pub(super) fn toolchain_libraries(cargo: &Cargo, runner: &mut dyn RunCargo) -> Result<Option<PathBuf>> {
    let mut args: Vec<OsString> = vec!["--print".into(), "target-libdir".into()];
    if let Some(target) = &cargo.options.target {
        args.extend(["--target".into(), target.into()]);
    }
    let mut call = cargo.call(args, StandardError::Capture);
    call.program = cargo.environment.get("RUSTC").map_or("rustc".into(), PathBuf::from);
    let output = runner.run(&call)?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(path.is_dir().then_some(path))
}

/// Whether these bytes stand anywhere in the executable.
pub(crate) fn mentions(path: &Path, needle: &[u8]) -> Result<bool> {
    File::open(path).and_then(|file| contains(file, needle)).map_err(|error| {
        Error::new(ExitCode::BuildFailed, format!("cannot read the executable `{}`", path.display())).caused_by(error)
    })
}

/// Looks for `needle` in blocks, so that memory does not grow with the executable.
fn contains(mut source: impl Read, needle: &[u8]) -> io::Result<bool> {
    let Some((first, rest)) = needle.split_first() else { return Ok(true) };
    let mut block = vec![0; 256 * 1024];
    let mut filled = 0;
    loop {
        let read = match source.read(&mut block[filled..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        filled += read;
        let mut from = 0;
        // Jumping from one first byte to the next is fast enough: the search of 30 MB takes a few milliseconds.
        while let Some(at) = block[from..filled].iter().position(|byte| byte == first).map(|at| from + at) {
            if block[at + 1..filled].starts_with(rest) {
                return Ok(true);
            }
            from = at + 1;
        }
        if read == 0 {
            return Ok(false);
        }
        // What may be the beginning of the needle stays.
        let kept = filled.min(rest.len());
        block.copy_within(filled - kept..filled, 0);
        filled = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives few bytes at a time.
    struct Slowly<'b>(&'b [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(out.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn needle_is_found_wherever_the_blocks_end() {
        let mut text = vec![0; 1000];
        text.extend(MARKER);
        text.extend([0; 10]);
        for step in 1..60 {
            assert!(contains(Slowly(&text, step), MARKER).expect("readable"), "{step}");
            assert!(!contains(Slowly(&text[..1000 + MARKER.len() - 1], step), MARKER).expect("readable"), "{step}");
        }
    }

    #[test]
    fn needle_across_two_full_blocks_is_found() {
        for before in 256 * 1024 - 50..256 * 1024 + 5 {
            let mut text = vec![0; before];
            text.extend(MARKER);
            assert!(contains(&text[..], MARKER).expect("readable"), "{before}");
        }
    }

    #[test]
    fn executable_that_does_not_exist_is_named() {
        let error = speaks_our_protocol(Path::new("/nowhere/x")).expect_err("it does not exist");
        assert!(error.what.contains("/nowhere/x"));
    }
}
