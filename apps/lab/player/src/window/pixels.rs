//! Converts pictures to the pixels of an X server: four bytes each, one of them unused.

use crate::picture::Picture;

/// Converts the top left `width` by `height` of `picture`, which is at least that large, to bytes
/// in the order blue, green, red, unused; in reverse order for a server with the highest byte
/// first.
///
/// Colours are those of BT.601 with black at 16 and white at 235, the default of H.264.
pub(super) fn convert(
    picture: &Picture,
    (width, height): (usize, usize),
    is_highest_first: bool,
    to: &mut Vec<u8>,
) {
    to.resize(4 * width * height, 0);
    let half = picture.width / 2;
    let chroma = |plane: usize, row: usize| {
        let start = row / 2 * half;
        picture.chroma[plane].get(start..start + half).unwrap_or(&[])
    };
    let rows = picture.luma.chunks_exact(picture.width.max(1));
    for (y, (luma, row)) in rows.zip(to.chunks_exact_mut((4 * width).max(1))).enumerate() {
        let [blue, red] = [0, 1].map(|plane| chroma(plane, y));
        for (x, (&luma, pixel)) in luma.iter().zip(row.as_chunks_mut::<4>().0).enumerate() {
            // A picture of odd width has no separate chroma for its last column.
            let at = |plane: &[u8]| plane.get(x / 2).or(plane.last()).copied().unwrap_or(128);
            let [r, g, b] = rgb(luma, at(blue), at(red));
            *pixel = if is_highest_first { [0, r, g, b] } else { [b, g, r, 0] };
        }
    }
}

/// Converts in 256ths: 255 / 219 for luma, and for the differences the products of the coefficients
/// of BT.601.
fn rgb(luma: u8, blue: u8, red: u8) -> [u8; 3] {
    let luma = 298 * (i32::from(luma) - 16) + 128;
    let (blue, red) = (i32::from(blue) - 128, i32::from(red) - 128);
    [luma + 409 * red, luma - 100 * blue - 208 * red, luma + 516 * blue]
        .map(|part| (part >> 8).clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_standard() {
        for (yuv, wanted) in [
            ([16, 128, 128], [0, 0, 0]),
            ([235, 128, 128], [255, 255, 255]),
            ([81, 90, 240], [255, 0, 0]),
            ([145, 54, 34], [0, 255, 0]),
            ([41, 240, 110], [0, 0, 255]),
            // Out of range.
            ([255, 255, 255], [255, 125, 255]),
        ] {
            let got = rgb(yuv[0], yuv[1], yuv[2]);
            assert!(got.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) <= 2), "{yuv:?}: {got:?}");
        }
    }

    #[test]
    fn each_pixel_has_its_own_luma_and_the_chroma_of_its_square() {
        let luma = (0..15).map(|n| 16 + 10 * n).collect();
        let chroma = [vec![128, 240], vec![128, 110]];
        let picture = Picture { width: 5, height: 3, luma, chroma };
        let mut pixels = Vec::new();
        convert(&picture, (5, 3), false, &mut pixels);
        for (n, pixel) in pixels.chunks(4).enumerate() {
            let (x, y) = (n % 5, n / 5);
            let [blue, red] = if x >= 2 && y < 2 { [240, 110] } else { [128; 2] };
            let [r, g, b] = rgb(16 + 10 * n as u8, blue, red);
            assert_eq!(pixel, [b, g, r, 0], "{x}, {y}");
        }
        // A part of the picture, in reverse byte order.
        let mut part = Vec::new();
        convert(&picture, (2, 1), true, &mut part);
        let backwards: Vec<_> = pixels[..8].chunks(4).flat_map(|p| [0, p[2], p[1], p[0]]).collect();
        assert_eq!(part, backwards);
    }

    #[test]
    fn a_picture_without_colours_is_gray() {
        let mut pixels = Vec::new();
        convert(&Picture::gray(2, 2), (2, 2), false, &mut pixels);
        assert_eq!(pixels, [130, 130, 130, 0].repeat(4));
    }
}
