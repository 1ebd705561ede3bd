//! Tests of the shifts of intervals, and of the lines from curves to their names.

use super::*;

fn curve(ends: Option<[f64; 2]>) -> Curve {
    let point = |place: f64| Point {
        place,
        label: place.to_string(),
        value: 1.0,
        ends,
    };
    Curve {
        name: "one".to_owned(),
        look: Look::BASELINE,
        points: [1.0, 2.0, 4.0].map(point).to_vec(),
    }
}

#[test]
fn intervals_at_one_value_stand_side_by_side_within_the_drawing() {
    let on = Across {
        stem: String::new(),
        name: String::new(),
        parameter: String::new(),
        ticks: [1.0, 2.0, 4.0]
            .map(|place| (place, place.to_string()))
            .to_vec(),
        by_logarithm: true,
    };
    let absent = Curve {
        points: Vec::new(),
        ..curve(None)
    };
    for count in [2, 8, 20] {
        let mut curves = vec![curve(Some([0.9, 1.1])); count];
        curves.insert(1, absent.clone());
        let mut shifts = shifts(&on, &curves, 490.0);
        shifts.remove(1);
        let apart = shifts.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(apart.fold(f64::INFINITY, f64::min) > 4.0, "{shifts:?}");
        assert!((shifts[0] + shifts[count - 1]).abs() < 1e-9, "{shifts:?}");
        let drawn = draw(&on, &curves, ("x", Unit::Number, "x"), "x").expect("curves");
        let svg = drawn.text();
        let places = svg.split(" stroke-width=\"1.2\" d=\"M").skip(1);
        let places: std::collections::HashSet<&str> =
            places.filter_map(|rest| rest.split(' ').next()).collect();
        assert_eq!(places.len(), 3 * count, "no stroke hides another");
        let lies = |x: &&str| x.parse().is_ok_and(|x: f64| (76.0..490.0).contains(&x));
        assert!(places.iter().all(lies), "{places:?}");
    }
    let plain = vec![curve(None); 3];
    assert_eq!(shifts(&on, &plain, 490.0), [0.0; 3]);
}

#[test]
fn a_name_is_tied_to_its_curve_where_that_reaches_the_last_value() {
    let on = Across {
        stem: String::new(),
        name: "sizes".to_owned(),
        parameter: String::new(),
        ticks: [1.0, 2.0, 4.0]
            .map(|place| (place, place.to_string()))
            .to_vec(),
        by_logarithm: true,
    };
    let mut short = curve(None);
    short.points.truncate(1);
    let drawn = draw(&on, &[curve(None), short], ("x", Unit::Number, "x"), "x");
    let svg = drawn.expect("a curve").text();
    // One match is the grid behind the data, the other a line to a name.
    assert_eq!(svg.matches("class=\"grid\"").count(), 2, "{svg}");
    assert!(svg.contains(">sizes<"), "{svg}");
}
