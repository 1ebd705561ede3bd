//! GraphicsMagick edits an image that this module generates.

use std::io::{self, Write};

use crate::random::Random;
use crate::request::{Request, stream_file, words};
use crate::{Event, Prepared, ProgramError};

/// Version of the generated image; increase it when the image changes.
const VERSION: &str = "graphicsmagick image 1";
/// Width and height of a square of one colour, in pixels.
const SQUARE: u64 = 8;

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let rows = request.values.number("rows");
    let stamp = [VERSION, &rows.to_string()];
    let input = request.input(&stamp, on_event, &|folder| {
        stream_file(&folder.join("image.ppm"), |file| write(file, rows))
    })?;
    let mut command = words(&[&request.tool(0), "convert", "image.ppm"]);
    for step in ["-resize 70%", "-blur 0x2", "-rotate 7", "-unsharp 0x1"] {
        command.extend(step.split(' ').map(str::to_owned));
    }
    command.push("ppm:-".to_owned());
    let mut prepared = request.prepared(input, command);
    let one_thread = ("OMP_NUM_THREADS".to_owned(), "1".to_owned());
    prepared.environment = [one_thread].into();
    Ok(prepared)
}

/// Writes an image of squares of random colours, with 4 columns for each 3 rows.
fn write(out: &mut impl Write, rows: u64) -> io::Result<()> {
    let columns = rows * 4 / 3;
    let mut random = Random::new(41);
    write!(out, "P6\n{columns} {rows}\n255\n")?;
    let mut line = Vec::new();
    for row in 0..rows {
        if row % SQUARE == 0 {
            line.clear();
            for _ in 0..columns.div_ceil(SQUARE) {
                let colour = [(); 3].map(|()| random.below(256) as u8);
                (0..SQUARE).for_each(|_| line.extend(colour));
            }
            line.truncate(columns as usize * 3);
        }
        out.write_all(&line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_has_as_many_pixels_as_its_header_says() {
        for (rows, columns) in [(3, 4), (9, 12), (100, 133)] {
            let mut image = Vec::new();
            write(&mut image, rows).expect("memory");
            let header = format!("P6\n{columns} {rows}\n255\n");
            assert!(image.starts_with(header.as_bytes()));
            assert_eq!(image.len() as u64, header.len() as u64 + rows * columns * 3);
        }
    }
}
