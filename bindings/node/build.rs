//! Sets the linker options for symbols that Node.js provides.

fn main() {
    napi_build::setup();
}
