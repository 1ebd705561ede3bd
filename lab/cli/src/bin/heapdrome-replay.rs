//! Replays a compiled trace; see the crate `heapdrome-replay`.

fn main() -> std::process::ExitCode {
    heapdrome_replay::main()
}
