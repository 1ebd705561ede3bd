//! Verdicts for simulations with millions of looks. They compute the ends of intervals only where
//! necessary.

use super::*;

impl Rule {
    /// Returns the logarithms of two estimates: by the rule, and by Student's interval alone.
    pub fn centres(&self, rounds: &Rounds<'_>, own: usize, other: usize) -> Option<[f64; 2]> {
        let cells = rounds.cells(own, other);
        if cells.rounds < FEWEST_ROUNDS {
            return None;
        }
        let student = self.by_student(&cells)?.centre;
        let test = self.critical_of_test(&cells);
        let tested = test.map(|_| Randomisation::new(&cells).estimate()[0]);
        Some([tested.unwrap_or(student), student])
    }

    /// Returns the side of `ratio` on which the rule's whole interval lies, and the side of
    /// `by_student` on which Student's interval lies. Computes an end of the rule's interval only
    /// if the verdict depends on it.
    pub fn leaves_out(
        &self,
        rounds: &Rounds<'_>,
        [own, other]: [usize; 2],
        ratio: f64,
        by_student: f64,
    ) -> [Shown; 2] {
        let cells = rounds.cells(own, other);
        if cells.rounds < FEWEST_ROUNDS {
            return [Shown::Nothing; 2];
        }
        let Some(student) = self.by_student(&cells) else {
            return [Shown::Nothing; 2];
        };
        let by_rule = match self.critical_of_test(&cells) {
            Some(critical) => tested(&cells, critical, student, ratio.ln()),
            None => student.side(ratio.ln()),
        };
        [by_rule, student.side(by_student.ln())]
    }
}

/// Returns the side of `wanted` on which the interval of the randomisation test wholly lies.
fn tested(cells: &Cells, critical: f64, student: Ends, wanted: f64) -> Shown {
    let by_student = student.side(wanted);
    if by_student == Shown::Nothing && cells.is_near(wanted) {
        return Shown::Nothing;
    }
    let mut test = Randomisation::new(cells);
    let deviate = test.deviate(wanted);
    if deviate.abs() >= critical {
        return if deviate > 0.0 {
            Shown::Above
        } else {
            Shown::Below
        };
    }
    // An end that the test cannot reach is replaced with the end of Student's interval.
    let side = match by_student {
        Shown::Above => -1.0,
        Shown::Below => 1.0,
        Shown::Nothing => return Shown::Nothing,
    };
    let estimate = test.estimate();
    match test.distance(estimate, side, critical) {
        Some(_) => Shown::Nothing,
        None => by_student,
    }
}

impl Ends {
    fn side(&self, wanted: f64) -> Shown {
        match () {
            () if self.low > wanted => Shown::Above,
            () if self.high < wanted => Shown::Below,
            () => Shown::Nothing,
        }
    }
}
