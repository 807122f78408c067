//! Gives the library the name under which the connectors of ModSecurity 3 load it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmodsecurity.so.3");
    // A thread that sends events may run when a program closes the library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
