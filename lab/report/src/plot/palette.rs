//! Colours of allocators. Readers without red, green or blue receptors can distinguish them, too.

/// Main colour on white paper, for files. The page's style overrides it.
pub(crate) const INK: &str = "#1a1a1a";

/// Colours for white paper. Each has a contrast of at least three to one against white. Any two
/// colours, ink included, are at least 25 apart in CIE Lab (1976, in which 2.3 is just noticeable),
/// for normal vision and for vision without red, green or blue receptors. A search chose the
/// colours that maximise the smallest distance. Some look alike in grey, so allocators also differ
/// in shapes and dashes.
pub(crate) const COLOURS: [&str; 10] = [
    "#d57d11", "#7e79f4", "#6d4e75", "#834b00", "#8d985a", "#432897", "#c078c8", "#1d5e3e",
    "#35a38c", "#42004d",
];
/// Colours for a dark page, chosen by the rules of `COLOURS` for its background and its main
/// colour.
pub(crate) const DARK_COLOURS: [&str; 10] = [
    "#a44f00", "#406a92", "#774fc4", "#abffad", "#17b58f", "#ea995a", "#c9154b", "#98afd0",
    "#fed149", "#c791ff",
];

#[cfg(test)]
mod tests {
    use super::super::palette::INK;
    use super::*;

    /// Main colour of a dark page, as in the page's style.
    const DARK_INK: &str = "#e8e8e6";
    /// Background of a dark page, as in the page's style.
    const DARK_PAPER: &str = "#16191d";

    /// Minimum distance of two colours in CIE Lab.
    const APART: f64 = 25.0;

    type Colour = [f64; 3];

    /// Matrices from linear red, green and blue to the colours seen with each kind of vision, at
    /// full severity (Machado, Oliveira and Fernandes, "A Physiologically-based Model for
    /// Simulation of Color Vision Deficiency", 2009).
    const EYES: [(&str, [Colour; 3]); 4] = [
        ("usual", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ),
    ];

    fn product(one: Colour, other: Colour) -> f64 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    }

    /// Returns the linear red, green and blue of `#rrggbb`.
    fn linear(colour: &str) -> Colour {
        [1, 3, 5].map(|place| {
            let byte = u8::from_str_radix(&colour[place..place + 2], 16).expect("hexadecimal");
            match f64::from(byte) / 255.0 {
                part if part <= 0.040_45 => part / 12.92,
                part => ((part + 0.055) / 1.055).powf(2.4),
            }
        })
    }

    fn seen(colour: &str, eyes: &[Colour; 3]) -> Colour {
        let colour = linear(colour);
        eyes.map(|row| product(row, colour).clamp(0.0, 1.0))
    }

    /// Returns the CIE Lab coordinates of linear sRGB under daylight (D65).
    fn lab(colour: Colour) -> Colour {
        let xyz = [
            product([0.412_456_4, 0.357_576_1, 0.180_437_5], colour) / 0.950_47,
            product([0.212_672_9, 0.715_152_2, 0.072_175_0], colour),
            product([0.019_333_9, 0.119_192_0, 0.950_304_1], colour) / 1.088_83,
        ];
        let [x, y, z] = xyz.map(|part| match part {
            dark if dark <= 216.0 / 24389.0 => (24389.0 / 27.0 * dark + 16.0) / 116.0,
            part => part.cbrt(),
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn distance(one: Colour, other: Colour) -> f64 {
        let apart = [0, 1, 2].map(|part| one[part] - other[part]);
        product(apart, apart).sqrt()
    }

    #[test]
    fn eyes_of_every_kind_tell_any_two_colours_apart() {
        for (ink, colours) in [(INK, COLOURS), (DARK_INK, DARK_COLOURS)] {
            for (eyes, seen_by) in EYES {
                let all: Vec<&str> = std::iter::once(ink).chain(colours).collect();
                for (place, one) in all.iter().enumerate() {
                    for other in &all[..place] {
                        let apart = distance(lab(seen(one, &seen_by)), lab(seen(other, &seen_by)));
                        assert!(
                            apart >= APART,
                            "{eyes}: {one} and {other} are {apart:.1} apart"
                        );
                    }
                }
            }
        }
    }

    /// A former pair of colours proves that the check can fail.
    #[test]
    fn rose_and_teal_are_alike_to_eyes_without_red() {
        let [rose, teal] = ["#c2556a", "#2b8a80"].map(|colour| lab(seen(colour, &EYES[1].1)));
        assert!(distance(rose, teal) < APART);
    }

    /// Returns the contrast of two colours as WCAG 2 defines it.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour| product([0.2126, 0.7152, 0.0722], linear(colour)) + 0.05;
        let [one, other] = [luminance(one), luminance(other)];
        one.max(other) / one.min(other)
    }

    #[test]
    fn every_colour_stands_out_from_its_paper() {
        for (paper, colours) in [("#ffffff", COLOURS), (DARK_PAPER, DARK_COLOURS)] {
            for colour in colours {
                let contrast = contrast(colour, paper);
                assert!(contrast >= 3.0, "{colour} on {paper}: {contrast:.2}");
            }
        }
    }
}
