//! The operations of a trace.

/// Nanoseconds since the recording began. Traces round the times of operations down to multiples of
/// [`Time::STEP`].
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// Unit of the times of operations in a trace, in nanoseconds.
    pub const STEP: u64 = 16;

    /// Returns the number of whole steps since the recording began.
    pub(crate) fn steps(self) -> u64 {
        self.0 / Self::STEP
    }

    /// Returns the time after a number of steps, or the largest time if that would overflow.
    pub(crate) fn from_steps(steps: u64) -> Self {
        Self(steps.saturating_mul(Self::STEP))
    }
}

/// One call of an allocation function.
///
/// `function` is an index into [`Recording::functions`](crate::Recording::functions). Blocks are
/// numbered within a process, from 0, in the order of the operations: every [`Make`](Self::Make)
/// and every [`Resize`](Self::Resize) takes the next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The call returned a new block.
    Make {
        /// The function that was called.
        function: u8,
        /// Bytes that were requested.
        size: u64,
        /// The alignment that was requested, in bytes; 0 if the function takes none.
        alignment: u64,
    },
    /// The call freed a block.
    Free {
        /// The function that was called.
        function: u8,
        /// The block's number.
        block: u64,
    },
    /// The call freed a block, and returned a new one with the content of the old one.
    Resize {
        /// The function that was called.
        function: u8,
        /// Bytes that were requested.
        size: u64,
        /// The number of the block that was freed.
        block: u64,
    },
    /// The call freed nothing, because the address was null.
    FreeNull {
        /// The function that was called.
        function: u8,
    },
    /// The call freed a block that this trace does not contain, such as one made before the
    /// recording began or one that a forked process inherited.
    FreeForeign {
        /// The function that was called.
        function: u8,
        /// The block's size in bytes, if it was inherited.
        size: Option<u64>,
    },
    /// The call returned no block.
    Fail {
        /// The function that was called.
        function: u8,
        /// Bytes that were requested.
        size: u64,
        /// The alignment that was requested, in bytes; 0 if the function takes none.
        alignment: u64,
    },
}

impl Operation {
    /// Returns whether the operation takes the next block number.
    #[must_use]
    pub fn makes_block(&self) -> bool {
        matches!(self, Self::Make { .. } | Self::Resize { .. })
    }

    /// Returns whether the operation requested a block, so that a stack may be recorded with it.
    #[must_use]
    pub fn may_have_stack(&self) -> bool {
        self.makes_block() || matches!(self, Self::Fail { .. })
    }

    /// Returns the function that was called.
    #[must_use]
    pub fn function(&self) -> u8 {
        match *self {
            Self::Make { function, .. }
            | Self::Free { function, .. }
            | Self::Resize { function, .. }
            | Self::FreeNull { function }
            | Self::FreeForeign { function, .. }
            | Self::Fail { function, .. } => function,
        }
    }
}

/// An operation with its thread, its time and its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of the thread within its process.
    pub thread: u32,
    /// Time at which a free was called, or at which any other function returned. Within a process,
    /// no step is earlier than the one before it.
    pub time: Time,
    /// The call.
    pub operation: Operation,
    /// Number of the recorded stack of the call. `None` if no stack was recorded, and always if the
    /// operation cannot [have one](Operation::may_have_stack).
    pub stack: Option<u32>,
}
