use std::collections::HashMap;

use crate::recorded;
use crate::recorder::Event;

const WORDS: [&str; 5] = ["rounds=2", "vectors=40", "min=64", "max=4096", "push=16"];

/// Returns the sizes of each vector's blocks in their order. A block that is freed immediately
/// before an allocation belongs to the vector of that allocation.
fn growths(calls: &[Event]) -> Vec<Vec<usize>> {
    let mut open: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut done = Vec::new();
    let mut moved: Option<Vec<usize>> = None;
    for (place, call) in calls.iter().enumerate() {
        match call.allocated {
            true => {
                let mut sizes = moved.take().unwrap_or_default();
                sizes.push(call.size);
                open.insert(call.block, sizes);
            }
            false => {
                let sizes = open.remove(&call.block).expect("a block in use");
                let next = calls.get(place + 1);
                // An allocation after the last free of a round begins the next round; no vector
                // moved.
                match next.is_some_and(|next| next.allocated) && !open.is_empty() {
                    true => moved = Some(sizes),
                    false => done.push(sizes),
                }
            }
        }
    }
    done
}

#[test]
fn half_of_the_vectors_double_and_the_others_grow_with_every_push() {
    let (recorder, _) = recorded("vectors", &WORDS);
    let done = growths(&recorder.events());
    assert_eq!(done.len(), 80);
    let by = |sizes: &[usize], next: fn(usize) -> usize| {
        sizes[0] == 16 && sizes.windows(2).all(|two| two[1] == next(two[0]))
    };
    let doubled = done.iter().filter(|sizes| by(sizes, |size| 2 * size));
    assert_eq!(doubled.count(), 40);
    let exact = done.iter().filter(|sizes| by(sizes, |size| size + 16));
    assert_eq!(exact.count(), 40);
    assert!(done.iter().any(|sizes| sizes.last() <= Some(&80)));
    assert!(done.iter().any(|sizes| sizes.last() > Some(&3000)));
}

#[test]
fn vectors_grow_at_the_same_time() {
    let (recorder, _) = recorded("vectors", &[&WORDS[..], &["exact=100"]].concat());
    let events = recorder.events();
    let mut of_each = events.split(|call| call.allocated && call.size > 16);
    let first = of_each.next().map_or(0, <[Event]>::len);
    assert!(
        first > 3,
        "{first} vectors have begun before the first grows"
    );
}

#[test]
fn a_vector_of_no_whole_words_is_refused() {
    let description = heapdrome_workloads::find("vectors").unwrap();
    let refused = heapdrome_workloads::Parameters::parse(description, &["push=12"]);
    assert!(refused.unwrap_err().to_string().contains("multiple of 8"));
}
