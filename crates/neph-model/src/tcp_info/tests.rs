use super::*;

/// Nothing of the structure is left out and nothing is read twice.
#[test]
fn the_fields_cover_the_structure_without_gap_or_overlap() {
    let mut end = 0;
    for Row { offset, width, .. } in FIELDS {
        assert_eq!(*offset, end);
        end += width;
    }
    assert_eq!(end, TcpField::BYTES);
}

#[test]
fn every_field_is_found_by_its_names() {
    for field in TcpField::all_fields() {
        assert_eq!(TcpField::from_name(&field.to_string()), Some(field));
        assert_eq!(TcpField::of_kernel(field.kernel_name()), Some(field));
    }
    assert_eq!(TcpField::from_name("snd_cwnd"), None);
    let window = TcpField::of_kernel("tcpi_snd_cwnd").map(|field| field.to_string());
    assert_eq!(window.as_deref(), Some("snd_cwnd_segments"));
}

#[test]
fn the_documentation_of_the_store_describes_every_field() {
    let page = include_str!("../../../../docs/schema.md");
    for field in TcpField::all_fields() {
        let row = format!("| `tcp_{field}` | {} |", field.about());
        assert!(page.contains(&row), "docs/schema.md lacks {row}");
    }
}

#[test]
fn fields_missing_in_the_kernel_structure_are_absent() {
    let mut bytes = [0; 100];
    bytes[68..72].copy_from_slice(&43_000_u32.to_ne_bytes());
    let read = |name| TcpField::of_kernel(name).and_then(|field| field.read(&bytes));
    assert_eq!(read("rtt"), Some(43_000));
    assert_eq!(read("total_retrans"), None);
}
