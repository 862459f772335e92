//! The program `neph`.

use std::process::ExitCode;

use neph_sys::memory::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    neph::main()
}
