//! What a bench file needs: `use httpbench_core::prelude::*;`.

pub use crate::{Check, Request, http_bench};
