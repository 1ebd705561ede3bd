//! Decodes the entries of rings.

use heapdrome_witness::ring::{ADDRESS_BITS, Event, LONG, STAMP_BITS, code};

/// An entry as it was copied out of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Raw {
    pub detail: u64,
    pub tag: u64,
}

impl Raw {
    /// Returns the address, or the value that the entry's code defines.
    #[inline]
    pub(crate) fn address(self) -> u64 {
        self.tag & ((1 << ADDRESS_BITS) - 1)
    }

    #[inline]
    fn code(self) -> u8 {
        (self.tag >> ADDRESS_BITS) as u8
    }
}

/// State of decoding a ring, on which the meaning of the next entry depends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decoder {
    /// Time stamp of the previous entry.
    stamp: u64,
    /// Size from the latest size entry, for a following entry whose own size field is too small.
    size: u64,
}

impl Decoder {
    /// Decodes an entry. Returns `None` for an entry that only supplies the stamp or the size of
    /// the next one.
    #[inline]
    pub(crate) fn event(&mut self, raw: Raw) -> Option<Event> {
        let (address, code) = (raw.address(), raw.code());
        if code >= code::WHOLE {
            return self.whole(raw);
        }
        // The entry contains the lowest bits of its stamp. Choose the stamp nearest to the previous
        // one, by adding the signed difference of these bits.
        let unused = u64::BITS - STAMP_BITS;
        let late = (raw.detail.wrapping_sub(self.stamp) << unused) as i64 >> unused;
        self.stamp = self.stamp.wrapping_add(late as u64);
        let size = match raw.detail >> STAMP_BITS {
            LONG => self.size,
            size => size,
        };
        Some(Event {
            stamp: self.stamp,
            size,
            address,
            code,
        })
    }

    fn whole(&mut self, raw: Raw) -> Option<Event> {
        let (address, code) = (raw.address(), raw.code());
        if code == code::SIZE {
            self.size = raw.detail;
            return None;
        }
        self.stamp = raw.detail;
        (code != code::TIME).then_some(Event {
            stamp: self.stamp,
            size: 0,
            address,
            code,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_witness::ring::{FAR, Ring};

    /// Writes events as a thread does, and decodes them. If `in_full` returns true for an event,
    /// its full stamp and size are written before it.
    fn through_a_ring(events: &[Event], in_full: impl Fn(&Event) -> bool) -> Vec<Event> {
        // SAFETY: zeros are valid values of all fields: atomics, numbers and bytes. Together they
        // are an empty ring.
        let ring = unsafe { Box::<Ring>::new_zeroed().assume_init() };
        for event in events {
            if in_full(event) {
                ring.write_whole(ring.reserve(1), code::TIME, 0, event.stamp);
                ring.write_whole(ring.reserve(1), code::SIZE, 0, event.size);
            }
            ring.write(ring.reserve(1), *event);
        }
        let mut decoder = Decoder::default();
        let read = |entry: &heapdrome_witness::ring::Entry| Raw {
            detail: entry.detail.load(std::sync::atomic::Ordering::Relaxed),
            tag: entry.tag.load(std::sync::atomic::Ordering::Relaxed),
        };
        let entries = ring.entries.iter().map(read);
        let written = entries.take_while(|raw| raw.tag != 0);
        written.filter_map(|raw| decoder.event(raw)).collect()
    }

    #[test]
    fn times_and_sizes_of_every_length_come_back() {
        let (mut events, mut stamp) = (Vec::new(), 0);
        for (place, size) in [0, 1, LONG - 1, LONG, LONG + 1, 1 << 40, u64::MAX]
            .into_iter()
            .cycle()
            .take(200)
            .enumerate()
        {
            // Every seventh entry is earlier than the previous one, as if a signal handler had
            // written the previous one after this entry's call had read the clock.
            stamp = if place % 7 == 6 {
                stamp - 1000
            } else {
                stamp + (FAR >> (place % 30))
            };
            let (address, code) = (0x7fff_ffff_fff0, code::MADE + 3);
            events.push(Event {
                stamp,
                size,
                address,
                code,
            });
        }
        let first = events[0].stamp;
        let read = through_a_ring(&events, |event| event.stamp == first || event.size >= LONG);
        assert_eq!(read, events);
    }
}
