//! The figures' font as a PDF wants it: glyph numbers as codes, with a table back to characters so
//! that text can be searched and copied.

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Filter, Finish, Name, Pdf, Rect, Ref, Str};

use super::super::Weight;
use super::super::font::{REGULAR, SEMIBOLD, advance};
use super::COMPRESSION;

const UNICODE_TABLE: Name<'_> = Name(b"Custom");
const SYSTEM: SystemInfo<'_> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};

/// The objects that one embedded font consists of.
#[derive(Clone, Copy)]
pub(super) struct FontRefs {
    pub(super) composite: Ref,
    descendant: Ref,
    descriptor: Ref,
    characters: Ref,
    file: Ref,
}

impl FontRefs {
    pub(super) const fn from(first: i32) -> Self {
        Self {
            composite: Ref::new(first),
            descendant: Ref::new(first + 1),
            descriptor: Ref::new(first + 2),
            characters: Ref::new(first + 3),
            file: Ref::new(first + 4),
        }
    }
}

/// The name under which a page's content calls the font.
pub(super) const fn name(weight: Weight) -> Name<'static> {
    match weight {
        Weight::Regular => Name(b"F0"),
        Weight::SemiBold => Name(b"F1"),
    }
}

/// Writes the font and everything that describes it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "glyph widths in thousandths of the font size"
)]
pub(super) fn embed(pdf: &mut Pdf, weight: Weight, refs: FontRefs) {
    let face = weight.face();
    let (base, file) = match weight {
        Weight::Regular => (Name(b"NEPHRP+Inter-Regular"), REGULAR),
        Weight::SemiBold => (Name(b"NEPHRP+Inter-SemiBold"), SEMIBOLD),
    };
    let units = 1000.0 / f32::from(face.units_per_em());
    pdf.type0_font(refs.composite)
        .base_font(base)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(refs.descendant)
        .to_unicode(refs.characters);
    let mut descendant = pdf.cid_font(refs.descendant);
    descendant
        .subtype(CidFontType::Type2)
        .base_font(base)
        .system_info(SYSTEM)
        .font_descriptor(refs.descriptor)
        .cid_to_gid_map_predefined(Name(b"Identity"));
    let widths = (0..face.number_of_glyphs())
        .map(|id| advance(face, ttf_parser::GlyphId(id)) as f32 * 1000.0);
    descendant.widths().consecutive(0, widths);
    descendant.finish();
    let bounds = face.global_bounding_box();
    let edge = |value: i16| f32::from(value) * units;
    pdf.font_descriptor(refs.descriptor)
        .name(base)
        .flags(FontFlags::SYMBOLIC)
        .bbox(Rect::new(
            edge(bounds.x_min),
            edge(bounds.y_min),
            edge(bounds.x_max),
            edge(bounds.y_max),
        ))
        .italic_angle(0.0)
        .ascent(edge(face.ascender()))
        .descent(edge(face.descender()))
        .cap_height(edge(face.capital_height().unwrap_or(0)))
        .stem_v(90.0)
        .font_file2(refs.file);
    let characters = compress_to_vec_zlib(&to_characters(face), COMPRESSION);
    pdf.stream(refs.characters, &characters)
        .filter(Filter::FlateDecode);
    let packed = compress_to_vec_zlib(file, COMPRESSION);
    let length = i32::try_from(file.len()).expect("the font is 40 kB");
    let mut stream = pdf.stream(refs.file, &packed);
    stream.filter(Filter::FlateDecode);
    stream.pair(Name(b"Length1"), length);
}

fn to_characters(face: &ttf_parser::Face<'_>) -> Vec<u8> {
    let mut table = UnicodeCmap::new(UNICODE_TABLE, SYSTEM);
    let subtables = face.tables().cmap.iter().flat_map(|cmap| cmap.subtables);
    for subtable in subtables.filter(ttf_parser::cmap::Subtable::is_unicode) {
        subtable.codepoints(|code| {
            let character = char::from_u32(code);
            let glyph = character.and_then(|c| face.glyph_index(c));
            if let (Some(character), Some(glyph)) = (character, glyph) {
                table.pair(glyph.0, character);
            }
        });
    }
    table.finish().to_vec()
}
