//! The flags of a plan's reflectors, which are those of `neph reflect`.

use clap::Parser;
use neph_campaign::plan::LabReflector;

use crate::{exit, reflect};

#[derive(Debug, Parser)]
struct ReflectFlags {
    #[command(flatten)]
    args: reflect::Args,
}

/// What a reflector's flags mean, or the first line of what `neph reflect` would say of them.
pub(super) fn reflect_flags(wanted: &LabReflector) -> Result<reflect::Args, String> {
    let flags = wanted.flags.iter().map(|flag| flag.value.as_str());
    let all = std::iter::once("neph reflect").chain(flags);
    let parsed = ReflectFlags::try_parse_from(all).map_err(|error| exit::first_line(&error))?;
    if parsed.args.user.is_named() {
        return Err(
            "--user: reflectors of a lab are threads of neph run, which needs root".to_owned(),
        );
    }
    Ok(parsed.args)
}
