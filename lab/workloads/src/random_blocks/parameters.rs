//! Parameters of blocks of random sizes.

use crate::{Parameter, Parameters};

/// Parameter for the minimum size of a block.
pub(crate) const MIN: Parameter =
    Parameter::new("min", "bytes", 16, [1, 1 << 30], "minimum size of a block");
/// Parameter for the maximum size of a block.
pub(crate) const MAX: Parameter = Parameter::new(
    "max",
    "bytes",
    1000,
    [1, 1 << 30],
    "maximum size of a block",
);
/// Parameter for the distribution of the sizes.
pub(crate) const DISTRIBUTION: Parameter = Parameter::new(
    "distribution",
    "",
    0,
    [0, 2],
    "0: all sizes equally probable, 1: linear falloff with size, 2: exponential falloff",
);

/// Parameter for the alignment of the blocks.
pub(crate) const ALIGN: Parameter = Parameter {
    name: "align",
    meaning: "0: malloc, without an alignment; 8 or 16: every block has this alignment \
              (posix_memalign); 3: a third of the blocks each, drawn at random",
    unit: "",
    default: 3,
    least: 0,
    most: 16,
};

/// Parameter that decides whether every page of each block is written.
pub(crate) const TOUCH: Parameter = Parameter {
    name: "touch",
    meaning: "1: write to every page of every block, so that resident memory can be compared with \
              requested memory; 0: write the first and last bytes only",
    unit: "",
    default: 1,
    least: 0,
    most: 1,
};

/// Checks that the minimum size does not exceed the maximum.
pub(crate) fn check_sizes(parameters: &Parameters) -> Result<(), String> {
    let (min, max) = (parameters.value("min"), parameters.value("max"));
    match min > max {
        true => Err(format!("min {min} is greater than max {max}")),
        false => Ok(()),
    }
}

/// Checks the value of `align`.
pub(crate) fn check_align(parameters: &Parameters) -> Result<(), String> {
    match parameters.value("align") {
        0 | 3 | 8 | 16 => Ok(()),
        other => Err(format!("align must be 0, 3, 8 or 16, not {other}")),
    }
}
