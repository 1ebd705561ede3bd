//! Groups blocks by function and size, and counts those that were live at the peak.

use crate::amount::Amount;
use crate::digits::{below, digits};

/// Blocks that one function made, of sizes with the same number of binary digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Index of the function in the names of the recording.
    pub function: u8,
    /// Power of two above all sizes of the class, in bytes. Each size except 0 is at least half of
    /// this power.
    pub below: u64,
    /// All blocks that were made.
    pub made: Amount,
    /// Blocks that were live when their process had the most live bytes.
    pub at_peak: Amount,
    /// Blocks that were live when their process ended.
    pub left: Amount,
}

/// Maximum number of classes of one function: one for each number of binary digits of a size.
const STEPS: usize = 65;

/// The classes of one process.
///
/// The blocks at the peak are derived from `since`, which counts the changes after the latest peak.
/// A new peak clears `since` only for the classes in `touched`, so it copies no classes.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    /// Index in `classes` plus one, indexed by function and digits; 0 if there is no class yet.
    places: Vec<u16>,
    classes: Vec<Entry>,
    touched: Vec<u16>,
}

#[derive(Debug)]
struct Entry {
    class: Class,
    /// Live blocks and bytes now, minus those at the peak, modulo 2^64.
    since: Amount,
    /// Whether the class is in `touched`.
    is_touched: bool,
}

impl Classes {
    /// Counts a block that was made.
    pub(crate) fn made(&mut self, function: u8, size: u64, amount: Amount) {
        let entry = self.entry(function, size);
        entry.class.made.add(amount);
        entry.class.left.add(amount);
        entry.since = entry.since.wrapping_add(amount);
    }

    /// Counts a block that was freed.
    pub(crate) fn freed(&mut self, function: u8, size: u64, amount: Amount) {
        let entry = self.entry(function, size);
        entry.class.left.subtract(amount);
        entry.since = entry.since.wrapping_sub(amount);
    }

    /// Records that the process has more live bytes now than ever before.
    pub(crate) fn peak(&mut self) {
        for place in self.touched.drain(..) {
            let entry = &mut self.classes[usize::from(place)];
            (entry.since, entry.is_touched) = (Amount::default(), false);
        }
    }

    /// Returns the class of a block that is made or freed, and adds the class to `touched`.
    fn entry(&mut self, function: u8, size: u64) -> &mut Entry {
        let step = digits(size);
        let index = usize::from(function) * STEPS + step;
        if self.places.len() <= index {
            self.places.resize(index + 1, 0);
        }
        let place = match self.places[index].checked_sub(1) {
            Some(place) => place,
            None => self.begin(function, step, index),
        };
        let entry = &mut self.classes[usize::from(place)];
        if !std::mem::replace(&mut entry.is_touched, true) {
            self.touched.push(place);
        }
        entry
    }

    /// Adds a class. Its index fits into 16 bits, because at most 256 functions have at most
    /// `STEPS` classes each.
    fn begin(&mut self, function: u8, step: usize, index: usize) -> u16 {
        let place = self.classes.len() as u16;
        self.places[index] = place + 1;
        let none = Amount::default();
        self.classes.push(Entry {
            class: Class {
                function,
                below: below(step),
                made: none,
                at_peak: none,
                left: none,
            },
            since: none,
            is_touched: false,
        });
        place
    }

    /// Returns all classes, in the order of functions and sizes.
    pub(crate) fn finish(self) -> Vec<Class> {
        let class = |entry: Entry| {
            let Entry {
                mut class, since, ..
            } = entry;
            class.at_peak = class.left.wrapping_sub(since);
            class
        };
        let mut classes: Vec<Class> = self.classes.into_iter().map(class).collect();
        classes.sort_unstable_by_key(|class| (class.function, class.below));
        classes
    }
}

/// Adds the classes of one process to the sums over several processes.
pub(crate) fn add(all: &mut Vec<Class>, other: &[Class]) {
    for class in other {
        let key = (class.function, class.below);
        match all.binary_search_by_key(&key, |own| (own.function, own.below)) {
            Ok(place) => {
                all[place].made.add(class.made);
                all[place].at_peak.add(class.at_peak);
                all[place].left.add(class.left);
            }
            Err(place) => all.insert(place, *class),
        }
    }
}
