//! The files are embedded anew when the console is built anew.

fn main() {
    println!("cargo:rerun-if-changed=../../console/dist");
}
