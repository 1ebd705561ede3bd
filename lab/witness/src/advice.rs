//! Advice about a program that the entrant did not serve.

use heapdrome_schema::UnservedReason;

/// Returns advice for a reader of the result: one sentence with neither an initial capital nor a
/// full stop. Messages show it alone, or after a colon or semicolon that follows the reason or the
/// program's name.
pub(crate) fn advice(reason: UnservedReason, served_by: Option<&str>) -> String {
    let other = served_by.unwrap_or("another object");
    match reason {
        UnservedReason::StaticBinary => {
            "link it dynamically, because nothing can be preloaded into a static binary, or link \
             each allocator into a build of its own and race the builds"
                .to_owned()
        }
        UnservedReason::RaisedRights => {
            "race a copy without setuid, setgid and file capabilities, which make the loader \
             ignore LD_PRELOAD, or start it as the user whose rights it takes"
                .to_owned()
        }
        UnservedReason::BundledAllocator => format!(
            "build it without the allocator in {other}, which takes precedence over a preloaded \
             one, or, if you only want the system's malloc and a library contains the other, preload \
             the C library itself"
        ),
        UnservedReason::ClearedEnvironment => {
            "keep LD_PRELOAD where its parent drops it (as env -i, sudo and some build systems \
             do), or race the inner command itself"
                .to_owned()
        }
        UnservedReason::DeepBind => format!(
            "open its library without RTLD_DEEPBIND or a namespace of its own, which make that \
             library take malloc from {other}, or read the row as covering only the rest of the \
             program"
        ),
        UnservedReason::OtherMachine => {
            "use a build of the program for this machine and word size, or a build of the \
             allocator for the program's"
                .to_owned()
        }
        UnservedReason::NotLoaded => {
            "check that its user can read the allocator's library, that the library defines malloc \
             and all its dependencies are installed (ldd), and that the program uses this system's \
             loader"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_reads_well_after_a_phrase_and_a_semicolon() {
        for reason in [
            UnservedReason::StaticBinary,
            UnservedReason::RaisedRights,
            UnservedReason::BundledAllocator,
            UnservedReason::ClearedEnvironment,
            UnservedReason::DeepBind,
            UnservedReason::OtherMachine,
            UnservedReason::NotLoaded,
        ] {
            let text = advice(reason, Some("/a/lib.so"));
            assert!(text.starts_with(char::is_lowercase), "{text}");
            assert!(
                text.ends_with(char::is_alphanumeric) && !text.contains(';'),
                "{text}"
            );
        }
    }
}
