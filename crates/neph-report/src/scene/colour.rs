//! A colour for screens and printers.

/// sRGB, 8 bits a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Colour {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
}

impl Colour {
    /// Paper.
    pub const WHITE: Self = Self::hex(0x00ff_ffff);
    /// Ink of text and box outlines.
    pub const INK: Self = Self::hex(0x0022_2a35);
    /// Ink of what should stand back: axis labels, notes.
    pub const FAINT_INK: Self = Self::hex(0x005b_6472);
    /// Axis lines.
    pub const AXIS: Self = Self::hex(0x0093_9ba8);
    /// Grid lines.
    pub const GRID: Self = Self::hex(0x00e4_e7ec);
    /// Warnings and loss.
    pub const ALARM: Self = Self::hex(0x00b4_2318);

    /// From `0xRRGGBB`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "each shift leaves one byte"
    )]
    pub const fn hex(rgb: u32) -> Self {
        Self {
            red: (rgb >> 16) as u8,
            green: (rgb >> 8) as u8,
            blue: rgb as u8,
        }
    }

    /// `#rrggbb`.
    pub fn css(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }

    /// How light a grey print of it is, 0 (black) to 1 (white); ITU-R BT.601 weights.
    pub fn lightness(self) -> f64 {
        (0.299 * f64::from(self.red) + 0.587 * f64::from(self.green) + 0.114 * f64::from(self.blue))
            / 255.0
    }
}
