//! The command line of `heapdrome replay`, and the options of a replay, which `heapdrome race` also
//! has.

use std::path::PathBuf;

use clap::Args;
use heapdrome_replay::{Speed, Touch};

use crate::values::{speed, touch};

/// Arguments of `heapdrome replay`.
#[derive(Args, Debug)]
pub struct ReplayArguments {
    /// The trace, as `heapdrome record` wrote it; `library:NAME` is a built-in trace, see
    /// `heapdrome trace library`
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The allocator: a name or the path of a shared object
    #[arg(short, long, value_name = "NAME", default_value = "system")]
    pub allocator: String,
    /// How the trace is replayed.
    #[command(flatten)]
    pub how: HowArguments,
}

/// How a trace is replayed.
#[derive(Args, Clone, Debug, Default)]
pub struct HowArguments {
    /// How fast a trace is replayed: `dependencies`, as fast as the order between allocating and
    /// freeing threads allows; `paced`, with the recorded pauses; or `locked`, one operation at a
    /// time in the recorded order [default: dependencies]
    #[arg(long, value_name = "SPEED", value_parser = speed)]
    pub speed: Option<Speed>,
    /// The part of each new block that a replay writes: `none`, the `first` word, a word in each of
    /// its `pages`, or `all` of it; `check` writes a pattern and compares it before the block is
    /// freed or resized [default: pages]
    #[arg(long, value_name = "HOW", value_parser = touch)]
    pub touch: Option<Touch>,
    /// The number of the process in the trace [default: the one with most operations]
    #[arg(long, value_name = "N")]
    pub process: Option<u32>,
}

impl HowArguments {
    /// Returns the name of the first of these options that is set.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--speed", self.speed.is_some()),
            ("--touch", self.touch.is_some()),
            ("--process", self.process.is_some()),
        ];
        let given = options.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option)
    }
}
