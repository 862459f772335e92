//! A name in a plan: one short line of visible characters.

use neph_text::{Fault, FromNode, Node, is_hidden};

/// A text of one line.
pub(crate) fn single_line_text(node: &Node) -> Result<String, Fault> {
    let text = String::from_node(node)?;
    if text.trim().is_empty() {
        return Err(Fault::new("this text is empty", "write a name"));
    }
    if text.contains(is_hidden) || text.len() > 200 {
        let message =
            "this text has line breaks, control or invisible characters, or more than 200 bytes";
        return Err(Fault::new(message, "write one short line"));
    }
    Ok(text)
}
