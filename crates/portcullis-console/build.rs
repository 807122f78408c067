//! The files are embedded anew when the console is built anew.

#[allow(clippy::disallowed_macros, reason = "Cargo reads what a build script prints")]
fn main() {
    println!("cargo:rerun-if-changed=../../console/dist");
}
