//! Roles of the threads, and the consumer that frees each batch of a producer.

use crate::Parameters;

/// Division of the threads into roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cast {
    /// One thread alternately allocates a batch and frees it.
    Alone,
    /// Some threads only allocate, the others only free.
    Apart { producers: usize, consumers: usize },
}

/// Role of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Both,
    Producer(usize),
    Consumer(usize),
}

impl Cast {
    /// Divides the threads into roles according to the parameters. By default, half of them are
    /// producers, with one more producer if the number is odd.
    ///
    /// # Errors
    /// Returns an error if the numbers contradict each other.
    pub(super) fn of(parameters: &Parameters) -> Result<Self, String> {
        let threads = parameters.value("threads");
        let (producers, consumers) = (parameters.value("producers"), parameters.value("consumers"));
        let given = producers + consumers;
        match (producers, consumers) {
            (0, 0) if threads == 1 => return Ok(Self::Alone),
            (0, 0) => {}
            (1.., 1..) if given != threads => {
                return Err(format!(
                    "producers={producers} and consumers={consumers} are {given} threads, not \
                     {threads}: say threads={given}"
                ));
            }
            _ if given > threads || (given == threads && producers * consumers == 0) => {
                return Err(format!(
                    "threads={threads} leaves no {} beside {given} {}",
                    if producers == 0 {
                        "producer"
                    } else {
                        "consumer"
                    },
                    if producers == 0 {
                        "consumers"
                    } else {
                        "producers"
                    },
                ));
            }
            _ => {}
        }
        let (producers, consumers) = match (producers, consumers) {
            (0, 0) => (threads - threads / 2, threads / 2),
            (0, consumers) => (threads - consumers, consumers),
            (producers, _) => (producers, threads - producers),
        };
        Ok(Self::Apart {
            producers: producers as usize,
            consumers: consumers as usize,
        })
    }

    pub(super) fn threads(self) -> usize {
        match self {
            Self::Alone => 1,
            Self::Apart {
                producers,
                consumers,
            } => producers + consumers,
        }
    }

    /// Returns the number of threads that allocate.
    pub(super) fn senders(self) -> usize {
        match self {
            Self::Alone => 1,
            Self::Apart { producers, .. } => producers,
        }
    }

    /// Returns the number of threads that have an inbox.
    pub(super) fn receivers(self) -> usize {
        match self {
            Self::Alone => 0,
            Self::Apart { consumers, .. } => consumers,
        }
    }

    /// Returns the role of the thread of this number.
    pub(super) fn role(self, number: usize) -> Role {
        match self {
            Self::Alone => Role::Both,
            Self::Apart { producers, .. } if number < producers => Role::Producer(number),
            Self::Apart { producers, .. } => Role::Consumer(number - producers),
        }
    }

    /// Returns the number of the consumer that frees a producer's batch. If there are as many
    /// producers as consumers, they form pairs; otherwise a producer sends its batches to all
    /// consumers in turn.
    pub(super) fn receiver(self, producer: usize, batch: u64) -> usize {
        match self {
            Self::Alone => 0,
            Self::Apart {
                producers,
                consumers,
            } if producers == consumers => producer,
            Self::Apart { consumers, .. } => {
                ((producer as u64 + batch) % consumers as u64) as usize
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(words: &str) -> Result<Cast, String> {
        let words: Vec<_> = words.split_whitespace().collect();
        let parsed = Parameters::parse(&super::super::DESCRIPTION, &words);
        Cast::of(&parsed.map_err(|refusal| refusal.to_string())?)
    }

    fn apart(producers: usize, consumers: usize) -> Result<Cast, String> {
        Ok(Cast::Apart {
            producers,
            consumers,
        })
    }

    #[test]
    fn threads_are_divided_as_told() {
        assert_eq!(cast("threads=1"), Ok(Cast::Alone));
        assert_eq!(cast("threads=2"), apart(1, 1));
        assert_eq!(cast("threads=7"), apart(4, 3));
        assert_eq!(cast("threads=5 consumers=1"), apart(4, 1));
        assert_eq!(cast("threads=5 producers=2"), apart(2, 3));
        assert_eq!(cast("4 3 1"), apart(3, 1));
        assert_eq!(cast("many-to-one"), apart(4, 1));
        assert_eq!(cast("one-to-many"), apart(1, 4));
    }

    #[test]
    fn contradictions_are_named() {
        let refused = |words, part| {
            let reason = cast(words).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        };
        refused("threads=4 producers=4", "no consumer beside 4 producers");
        refused("threads=1 consumers=1", "no producer beside 1 consumers");
        refused("threads=3 consumers=5", "no producer beside 5 consumers");
        refused("producers=3 consumers=1", "say threads=4");
        refused("min=9 max=8", "min 9 is greater than max 8");
        refused("align=4", "align must be 0, 3, 8 or 16");
    }

    #[test]
    fn pairs_stay_and_others_take_turns() {
        let pairs = apart(3, 3).unwrap();
        assert!((0..9).all(|batch| pairs.receiver(2, batch) == 2));
        let many = apart(2, 3).unwrap();
        let receivers: Vec<_> = (0..6).map(|batch| many.receiver(1, batch)).collect();
        assert_eq!(receivers, [1, 2, 0, 1, 2, 0]);
    }
}
