//! Servers of other git revisions, over real repositories with the real git and the real cargo.

mod building;
mod checking_out;
mod repository;
mod resolving;
