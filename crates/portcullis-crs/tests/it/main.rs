//! Releases as archives: good ones, damaged ones, hostile ones.

mod archives;
mod fetching;
mod folder;
mod hostile;
mod packing;
