//! Removal of invisible points of a curve, by the algorithm of Ramer, Douglas and Peucker.

/// Maximum distance of a removed point from the drawn line, in units of the drawing. A line is at
/// least one unit wide, so the change is invisible.
const NEAR: f64 = 0.3;

/// Returns a subset of the points, including the first and the last. Every removed point is within
/// [`NEAR`] of the line between the nearest kept points.
pub(super) fn visible(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let Some(last) = points.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut kept = vec![false; points.len()];
    (kept[0], kept[last]) = (true, true);
    let mut open = vec![(0, last)];
    while let Some((from, to)) = open.pop() {
        let away = |place: usize| distance(points[place], points[from], points[to]);
        let between = (from + 1..to).map(|place| (away(place), place));
        let farthest = between.max_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((_, place)) = farthest.filter(|(away, _)| *away > NEAR) {
            kept[place] = true;
            open.extend([(from, place), (place, to)]);
        }
    }
    let kept = points.iter().zip(kept).filter(|(_, kept)| *kept);
    kept.map(|(point, _)| *point).collect()
}

/// Returns the distance of a point from the line segment between two others.
fn distance([x, y]: [f64; 2], [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> f64 {
    let [along, up] = [x2 - x1, y2 - y1];
    let length = along.powi(2) + up.powi(2);
    let part = match length > 0.0 {
        true => (((x - x1) * along + (y - y1) * up) / length).clamp(0.0, 1.0),
        false => 0.0,
    };
    (x - x1 - part * along).hypot(y - y1 - part * up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_a_line_is_left_out_and_peaks_stay() {
        let flat: Vec<_> = (0..1000).map(|x| [f64::from(x), 5.0]).collect();
        assert_eq!(visible(&flat), [[0.0, 5.0], [999.0, 5.0]]);
        let mut peaked = flat.clone();
        peaked[500][1] = 6.0;
        let kept = visible(&peaked);
        assert!(kept.contains(&[500.0, 6.0]) && kept.len() <= 5, "{kept:?}");
        assert_eq!(visible(&[]), Vec::<[f64; 2]>::new());
        assert_eq!(visible(&[[1.0, 2.0]]), [[1.0, 2.0]]);
    }

    #[test]
    fn no_point_is_far_from_what_is_drawn() {
        let wave = |x: u32| [f64::from(x) / 10.0, 20.0 * (f64::from(x) / 50.0).sin()];
        let points: Vec<_> = (0..3000).map(wave).collect();
        let kept = visible(&points);
        assert!(kept.len() < points.len() / 10, "{}", kept.len());
        for point in points {
            let lines = kept.windows(2).map(|two| distance(point, two[0], two[1]));
            assert!(lines.fold(f64::INFINITY, f64::min) <= NEAR);
        }
    }
}
