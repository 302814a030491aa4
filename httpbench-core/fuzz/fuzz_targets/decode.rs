//! Whatever a server sends, however it is cut: the decoder gives the same answer, keeps a bounded memory, and never panics.

#![no_main]

use httpbench_core::engine::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fuzzing::decode_input(input));
