//! The frame's number, drawn in the frame, so that a program that sees a picture can identify it.
//!
//! Sixteen pairs of squares at the top left, the lowest bit first: for a set bit the upper square
//! is white and the lower one black, otherwise the reverse. A reader compares the two, so a loss of
//! contrast does not mislead it; pairs of equal squares are not a counter.
//!
//! ```text
//!   bit       0  1  2  3 …      number 5
//!   upper     █  ·  █  ·
//!   lower     ·  █  ·  █
//! ```

use std::fmt::Write as _;

use crate::picture::Picture;

/// Bits of the number.
const BITS: usize = 16;
/// A square's side, in pixels: a macroblock, so that compression keeps squares separate.
const SIDE: usize = 16;
/// The place of the first square, from the left and from the top.
const EDGE: usize = 16;
/// The least difference between the two squares of a bit, in steps of luma (0 to 255).
const CONTRAST: u32 = 64;

/// The least width and height of a picture for the counter.
pub const ROOM: (usize, usize) = (2 * EDGE + BITS * SIDE, 2 * EDGE + 2 * SIDE);

/// A filter of ffmpeg that draws the number of each frame.
pub fn filter() -> String {
    let (width, height) = ROOM;
    let mut text = format!("drawbox=x=0:y=0:w={width}:h={height}:color=black:t=fill");
    for bit in 0..BITS {
        let x = EDGE + bit * SIDE;
        for (row, test) in ["eq", "lt"].into_iter().enumerate() {
            let y = EDGE + row * SIDE;
            // Writing to a string never fails.
            let _ = write!(
                text,
                ",drawbox=x={x}:y={y}:w={SIDE}:h={SIDE}:color=white:t=fill:\
                 enable='{test}(mod(floor(n/{}),2),1)'",
                1u32 << bit
            );
        }
    }
    text
}

/// The number in a picture; `None` if none can be read.
pub fn read(picture: &Picture) -> Option<u16> {
    let (width, height) = ROOM;
    if picture.width < width || picture.height < height {
        return None;
    }
    (0..BITS).try_fold(0, |number, bit| {
        let [upper, lower] = [0, 1].map(|row| mean(picture, bit, row));
        (upper.abs_diff(lower) >= CONTRAST).then(|| number | u16::from(upper > lower) << bit)
    })
}

/// Draws a number in a picture, which is at least as large as [`ROOM`].
pub(crate) fn draw(picture: &mut Picture, number: u16) {
    for bit in 0..BITS {
        let is_set = number >> bit & 1 == 1;
        for row in 0..2 {
            let white = is_set == (row == 0);
            for y in square(row) {
                let start = y * picture.width + square(bit).start;
                picture.luma[start..start + SIDE].fill(if white { 235 } else { 16 });
            }
        }
    }
}

fn square(number: usize) -> std::ops::Range<usize> {
    EDGE + number * SIDE..EDGE + (number + 1) * SIDE
}

/// The mean of the pixels inside a square.
fn mean(picture: &Picture, bit: usize, row: usize) -> u32 {
    let inside = |number| {
        let all = square(number);
        all.start + SIDE / 4..all.end - SIDE / 4
    };
    let pixels = inside(row).flat_map(|y| inside(bit).map(move |x| (x, y)));
    let sum: u32 = pixels.map(|(x, y)| u32::from(picture.luma[y * picture.width + x])).sum();
    sum / (SIDE as u32 / 2).pow(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_read() {
        for number in [0, 1, 2, 0x5555, 0xaaaa, 1000, u16::MAX] {
            let mut picture = Picture::gray(ROOM.0, ROOM.1);
            assert_eq!(read(&picture), None);
            draw(&mut picture, number);
            assert_eq!(read(&picture), Some(number));
        }
    }

    #[test]
    fn half_of_a_picture_has_no_number() {
        let mut picture = Picture::gray(ROOM.0, ROOM.1);
        draw(&mut picture, 7);
        picture.luma[ROOM.0 * ROOM.1 / 2..].fill(128);
        picture.luma[..ROOM.0 * ROOM.1 / 2].fill(128);
        assert_eq!(read(&picture), None);
        assert_eq!(read(&Picture::gray(8, 8)), None);
    }
}
