//! Runs one synthetic workload; see the crate `heapdrome-runner`.

fn main() -> std::process::ExitCode {
    heapdrome_runner::main()
}
