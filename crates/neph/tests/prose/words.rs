//! What is wrong with a piece of text: a word of our own in the place of the field's, or a long sentence.

use std::fmt;

/// Words in a sentence, at most.
const MAX_WORDS: usize = 30;

/// Phrases that readers stumbled over, and what to write instead. A phrase matches whole words.
const REPLACEMENTS: &[(&[&str], &str)] = &[
    (
        &["tell", "tells", "told", "telling", "says", "said", "saying"],
        "report, show, print, detect, distinguish",
    ),
    (
        &["sent again", "sends again", "send again", "sent anew"],
        "retransmitted, retransmission",
    ),
    (
        &["overtaken", "overtakes", "overtook", "out of turn"],
        "reordered, out of order",
    ),
    (
        &["shown twice", "shown again", "shows again", "seen twice"],
        "duplicate in the capture",
    ),
    (
        &[
            "there and back",
            "both ways",
            "which way",
            "either way",
            "way back",
            "way there",
        ],
        "forward and reverse path, direction",
    ),
    (&["thinks"], "server processing time"),
    (
        &["peer's program", "own program", "our program"],
        "server application, client application",
    ),
    (
        &[
            "our host",
            "our own",
            "our port",
            "own kernel",
            "our kernel",
            "own host",
        ],
        "client host, local",
    ),
    (
        &[
            "is held",
            "was not held",
            "kept its word",
            "keeps its word",
            "keep their word",
        ],
        "target reached, target missed, within tolerance",
    ),
    (
        &["load is made", "loads are made", "load was made"],
        "load is generated",
    ),
    (&["stranger", "strangers"], "third-party server"),
    (
        &["blind", "could not look", "cannot look"],
        "not evaluated (reason)",
    ),
    (&["costliest"], "root cause, ordered by added latency"),
    (&["dear", "dearer", "cheap", "cheaper"], "adds N ms"),
    (&["lane", "lanes"], "slot"),
    (&["renewed", "renews", "renewals"], "replaced by a new flow"),
    (&["breathes", "breathe", "breathing"], "fills and drains"),
    (&["idleness"], "idle period"),
    (&["drift apart", "drifts apart", "drifted apart"], "drift"),
    (
        &[
            "stands in for",
            "stand in for",
            "stood in for",
            "stood in",
            "stands in",
        ],
        "replaces, fallback",
    ),
    (&["what is to be done", "what helps"], "remedy, next step"),
    (&["by lot"], "at random"),
    (
        &["one in twenty", "one in a hundred", "slowest twentieth"],
        "5 %, above p95",
    ),
    (
        &["tell from chance", "from chance", "by chance"],
        "not significant",
    ),
    (&["the pair's"], "per pair"),
    (&["aim", "aims"], "target"),
    (
        &[
            "door",
            "doors",
            "ears",
            "courtesy",
            "crowd",
            "crowds",
            "hopes",
            "vigil",
            "vigils",
            "fate",
            "fates",
            "elsewhere",
            "beside",
        ],
        "the term of docs/glossary.md",
    ),
    (&["translator", "translators"], "NAT"),
    (&["packed"], "compressed"),
    (
        &["nobody", "somebody", "whoever", "alike", "anew"],
        "name who or what",
    ),
];

/// What is wrong.
#[derive(Debug)]
pub(super) enum Fault {
    /// A home-made phrase, and what to write instead.
    Word(&'static str, &'static str),
    /// A sentence of so many words, and how it begins.
    Long(usize, String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word, replacement) => write!(f, "'{word}': {replacement}"),
            Self::Long(count, begins) => write!(f, "{count} words: {begins} ..."),
        }
    }
}

/// The faults of one paragraph, list item, cell, comment or string.
pub(super) fn faults(text: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let texts = text.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '_'));
    let args: Vec<String> = texts
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let joined = format!(" {} ", args.join(" "));
    for (phrases, replacement) in REPLACEMENTS {
        for phrase in *phrases {
            let count = joined.matches(&format!(" {phrase} ")).count();
            faults.extend((0..count).map(|_| Fault::Word(phrase, replacement)));
        }
    }
    for sentence in sentences(text) {
        let args: Vec<&str> = sentence.split_whitespace().collect();
        let args: Vec<&str> = args
            .into_iter()
            .filter(|word| word.contains(char::is_alphanumeric))
            .collect();
        if args.len() > MAX_WORDS {
            faults.push(Fault::Long(args.len(), args[..8].join(" ")));
        }
    }
    faults
}

/// Sentences end with a full stop, a question mark or an exclamation mark before a space.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut rest = text;
    while let Some(end) = end(rest) {
        sentences.push(&rest[..end]);
        rest = &rest[end..];
    }
    sentences.push(rest);
    sentences
}

fn end(text: &str) -> Option<usize> {
    let ends = text.match_indices(['.', '?', '!']);
    ends.map(|(at, mark)| at + mark.len())
        .find(|end| text[*end..].starts_with(char::is_whitespace) && *end < text.len())
}

#[test]
fn a_long_sentence_and_a_home_made_word_are_faults() {
    let shown =
        |text: &str| -> Vec<String> { faults(text).iter().map(ToString::to_string).collect() };
    assert_eq!(
        shown("neph reports p99 from 299 samples on."),
        Vec::<String>::new()
    );
    assert_eq!(
        shown("What was sent again shows no queue that breathes."),
        [
            "'sent again': retransmitted, retransmission",
            "'breathes': fills and drains"
        ]
    );
    assert_eq!(shown("A retold story; indoors."), Vec::<String>::new());
    let thirty_words = "word ".repeat(29) + "end.";
    assert_eq!(
        shown(&format!("{thirty_words} {thirty_words}")),
        Vec::<String>::new()
    );
    assert_eq!(
        shown(&format!("One {thirty_words}")),
        ["31 words: One word word word word word word word ..."]
    );
}
