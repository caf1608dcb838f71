//! What the linker has to know of an addon for Node.js.

fn main() {
    napi_build::setup();
}
