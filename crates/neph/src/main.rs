//! The program `neph`.

use std::process::ExitCode;

fn main() -> ExitCode {
    neph::main()
}
