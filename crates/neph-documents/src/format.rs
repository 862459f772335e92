//! The formats in which documents are written. Each command offers those that fit its result.

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tables and sentences.
    Text,
    /// One JSON document at the end.
    Json,
    /// A JSON document on each line, written as results become known.
    Ndjson,
    /// Comma-separated values (RFC 4180): a header, then one line for each row.
    Csv,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Text, Self::Json, Self::Ndjson, Self::Csv];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
        }
    }

    /// What the format is, in a few words for the help of a command.
    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Text => "Tables and sentences for people",
            Self::Json => "One JSON document at the end",
            Self::Ndjson => "One JSON object per line, as soon as neph has the result",
            Self::Csv => "Comma-separated values: a header line, then one line per row",
        }
    }
}
