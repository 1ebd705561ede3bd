//! Tests profiles of random traces, and of traces that are too large for complete timelines.

use heapdrome_trace::{Beginning, Operation, Step, Time};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::stacks::{STACKS, with_stacks};
use crate::trace::{Trace, free, make, resize};
use crate::truth;

/// Returns random operations of a program that makes, resizes and frees blocks in four threads.
fn steps(draws: &mut ChaCha8Rng, begin: u64, count: usize) -> Vec<Step> {
    let mut live: Vec<u64> = Vec::new();
    let (mut next, mut time) = (0, begin);
    let mut steps = Vec::new();
    for _ in 0..count {
        let pause = 1_u64 << draws.random_range(4..14);
        time += draws.random_range(0..pause) / 16 * 16;
        let chosen = draws.random_range(0..live.len().max(1));
        let largest = 1 << draws.random_range(1..16);
        let operation = match draws.random_range(0..100) {
            0..45 => make(draws.random_range(0..largest)),
            45..60 if !live.is_empty() => {
                resize(live.swap_remove(chosen), draws.random_range(0..100_000))
            }
            60..75 if !live.is_empty() => free(live.swap_remove(chosen)),
            75..98 if !live.is_empty() => free(live.pop().unwrap_or(0)),
            _ => Operation::FreeNull { function: 2 },
        };
        if operation.makes_block() {
            live.push(next);
            next += 1;
        }
        let thread = draws.random_range(0..4);
        let stack = draws.random_range(0..STACKS + 1);
        let has_stack = operation.makes_block() && stack < STACKS;
        steps.push(Step {
            thread,
            time: Time(time),
            operation,
            stack: has_stack.then_some(stack),
        });
    }
    steps
}

#[test]
fn one_process_is_profiled_exactly() {
    for seed in 0..6 {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let steps = steps(&mut draws, 0, 1500);
        let mut trace = with_stacks(0, 1);
        trace.begin(0, 0, Beginning::Executed);
        steps.iter().for_each(|step| trace.step(0, *step));
        if seed % 2 == 0 {
            trace.end(0, steps.last().map_or(0, |step| step.time.0) + 1_000_000);
        }
        let profile = trace.profile();
        truth::check(&steps, &profile.processes[0]);
        let peak = profile.processes[0].peak.live.bytes;
        assert!(profile.all.peak.is_exact() && profile.all.peak.least == peak);
    }
}

#[test]
fn a_long_program_keeps_its_peak_in_few_points() {
    let mut trace = Trace::new();
    let mut steps = Vec::new();
    for round in 0..20_000_u64 {
        let size = if round == 12_345 { 1 << 20 } else { 100 };
        steps.push((round * 160, make(size)));
        steps.push((round * 160 + 16, free(round)));
    }
    steps
        .iter()
        .for_each(|(time, operation)| trace.does(0, *time, *operation));
    let profile = trace.profile();
    let timeline = &profile.processes[0].timeline;
    assert!(timeline.points.len() <= heapdrome_profile::POINTS);
    let most = timeline.points.iter().map(|point| point.bytes.most).max();
    assert_eq!(most, Some(1 << 20));
    let peak = timeline.at(12_345 * 160).map(|point| point.bytes.most);
    assert_eq!(peak, Some(1 << 20));
    assert_eq!(profile.processes[0].counts.temporary.blocks, 20_000);
}

/// Returns the changes of a process's live bytes, with their times. The process ends at `end`.
fn changes(steps: &[Step], end: u64) -> Vec<(u64, i64)> {
    let mut before = 0;
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for (step, bytes) in steps.iter().zip(truth::live_bytes(steps)) {
        changes.push((step.time.0, bytes as i64 - before));
        before = bytes as i64;
    }
    changes.push((end, -before));
    changes
}

#[test]
fn the_peak_of_many_processes_lies_within_its_bounds() {
    for seed in 0..10 {
        let mut draws = ChaCha8Rng::seed_from_u64(100 + seed);
        let mut trace = with_stacks(0, 1);
        let mut all = Vec::new();
        let mut calls = 0;
        for process in 0..5 {
            let begin = draws.random_range(0..2_000_000);
            let count = draws.random_range(10..800);
            let steps = steps(&mut draws, begin, count);
            trace.begin(process, begin, Beginning::Executed);
            steps.iter().for_each(|step| trace.step(process, *step));
            let end = steps.last().map_or(begin, |step| step.time.0) + 16;
            trace.end(process, end);
            all.extend(changes(&steps, end));
            calls += steps.len() as u64;
        }
        // The sort is stable, so each process keeps the order of its changes.
        all.sort_by_key(|(time, _)| *time);
        let mut live = 0;
        let peak = all
            .iter()
            .map(|(_, change)| {
                live += change;
                live
            })
            .max()
            .unwrap_or(0) as u64;
        let profile = trace.profile();
        let bounds = profile.all.peak;
        assert!(
            (bounds.least..=bounds.most).contains(&peak),
            "{bounds:?} {peak}"
        );
        assert_eq!(profile.all.counts.calls(), calls);
        let timeline: u64 = profile
            .all
            .timeline
            .points
            .iter()
            .map(|point| point.calls)
            .sum();
        assert_eq!(timeline, calls);
    }
}

#[test]
fn of_many_processes_the_largest_have_timelines() {
    let mut trace = Trace::new();
    for process in 0..100 {
        trace.begin(process, u64::from(process) * 1000, Beginning::Executed);
        let size = if process == 50 {
            1 << 20
        } else {
            100 + u64::from(process)
        };
        let time = Time(u64::from(process) * 1000 + 160);
        trace.step(
            process,
            Step {
                thread: 0,
                time,
                operation: make(size),
                stack: None,
            },
        );
        trace.end(process, u64::from(process) * 1000 + 500);
    }
    let profile = trace.profile();
    let with: Vec<_> = profile
        .processes
        .iter()
        .filter(|one| !one.timeline.points.is_empty())
        .collect();
    assert_eq!(with.len(), 32);
    assert!(with.iter().any(|one| one.number == 50));
    let bounds = profile.all.peak;
    assert!(
        bounds.least == 1 << 20 && bounds.most >= 1 << 20,
        "{bounds:?}"
    );
}
