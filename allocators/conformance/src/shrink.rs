//! Shrinking of a failing program.

use crate::Program;

/// Removes runs of steps, long runs first, as long as the program still fails. Makes at most
/// `attempts` calls of `fails`, which decides whether a program fails.
pub fn shrink(
    program: Program,
    attempts: usize,
    mut fails: impl FnMut(&Program) -> bool,
) -> Program {
    let mut smallest = program;
    let mut left = attempts;
    let mut stretch = smallest.0.len().div_ceil(2);
    while stretch > 0 {
        let mut removed = false;
        let mut start = 0;
        while start < smallest.0.len() {
            if left == 0 {
                return smallest;
            }
            left -= 1;
            let mut steps = smallest.0.clone();
            steps.drain(start..steps.len().min(start + stretch));
            let candidate = Program(steps);
            if fails(&candidate) {
                smallest = candidate;
                removed = true;
            } else {
                start += stretch;
            }
        }
        if !removed || stretch > 1 {
            stretch /= 2;
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    #[test]
    fn what_matters_is_left() {
        let program = Program::generate(5, 3, 400);
        let wanted = program.0[237];
        let small = shrink(program, 1000, |candidate| candidate.0.contains(&wanted));
        assert_eq!(small.0, [wanted]);
    }

    #[test]
    fn a_pair_of_steps_far_apart_is_found() {
        let program = Program::generate(6, 1, 300);
        let frees = |candidate: &Program| {
            candidate
                .0
                .iter()
                .filter(|step| step.operation == Operation::Free)
                .count()
        };
        let small = shrink(program, 3000, |candidate| frees(candidate) >= 2);
        assert_eq!(small.0.len(), 2);
    }

    #[test]
    fn attempts_are_bounded() {
        let mut asked = 0;
        let _ = shrink(Program::generate(7, 1, 1000), 25, |_| {
            asked += 1;
            false
        });
        assert_eq!(asked, 25);
    }
}
