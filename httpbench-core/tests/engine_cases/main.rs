//! The load engine against scripted servers: what it sends, what it counts, how it ends.
//!
//! Slices end by time, so tests compare the engine's counts with the server's and never with a speed. Names that begin
//! with `LG` in comments are those of the project's list of cases.

mod addresses;
mod agreement;
mod counted;
mod exact;
mod expect;
mod framing;
mod life;
mod load;
mod open_loop;
mod peer;
mod pipelining;
mod redirects;
mod schedules;
mod sessions;
mod single_use;
mod slices;
mod stalls;
mod watched;
