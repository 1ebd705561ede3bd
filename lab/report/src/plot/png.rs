//! Drawings as images. resvg renders them with fonts embedded in heapdrome, so the result does not
//! depend on the fonts of the machine.

use std::sync::Arc;

use resvg::{tiny_skia, usvg};

use crate::ReportError;

/// Factor by which images are larger than the nominal size, so that they are sharp when printed in
/// a column's width.
const ENLARGED: f32 = 2.0;

/// Renders `svg` as PNG.
pub(super) fn render(svg: &str) -> Result<Vec<u8>, ReportError> {
    let failed = |reason: String| ReportError::Png(reason);
    let mut options = usvg::Options {
        font_family: "Ubuntu".to_owned(),
        ..usvg::Options::default()
    };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    fonts.load_font_data(epaint_default_fonts::HACK_REGULAR.to_vec());
    let family = fonts
        .faces()
        .next()
        .and_then(|face| face.families.first().map(|(name, _)| name.clone()));
    if let Some(family) = family {
        fonts.set_sans_serif_family(family);
    }
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| failed(error.to_string()))?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (side * ENLARGED).ceil() as u32);
    let mut image = tiny_skia::Pixmap::new(width, height).ok_or_else(|| {
        failed(format!(
            "an image of {width} by {height} points is too large"
        ))
    })?;
    resvg::render(
        &tree,
        tiny_skia::Transform::from_scale(ENLARGED, ENLARGED),
        &mut image.as_mut(),
    );
    image
        .encode_png()
        .map_err(|error| failed(error.to_string()))
}
