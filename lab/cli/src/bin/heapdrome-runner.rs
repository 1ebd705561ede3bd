//! Runs one synthetic workload; see the crate `heapdrome-workload-runner`.

fn main() -> std::process::ExitCode {
    heapdrome_workload_runner::main()
}
