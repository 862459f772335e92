//! User-Mode Linux: a Linux kernel as a program of this one, which starts within two seconds and
//! needs nothing of the processor. It has one CPU. Its interface is a tap, by its "vector" driver.

use neph_text::Fields;

use super::guests::{self, Machine, Start};
use crate::fixture::{Build, FixtureKind, Nodes};

#[derive(Debug)]
pub(crate) struct UserMode;

impl FixtureKind for UserMode {
    fn name(&self) -> &'static str {
        "uml"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn Build>> {
        guests::read(table, nodes, Self)
    }
}

impl Machine for UserMode {
    fn command(&self, start: &Start<'_>) -> String {
        let Start {
            name,
            mebibytes,
            image,
            tap,
            mac,
            words,
        } = start;
        // Its own files would be in the home folder.
        format!(
            "linux.uml uml_dir=. umid={name}.uml mem={mebibytes}M initrd={image} \
             init=/init panic=-1 quiet vec0:transport=tap,ifname={tap},depth=128,gro=0,mac={mac} \
             con=null con0=null,fd:1 con1=fd:5,fd:6 neph.dev=vec0 neph.console=tty1 {words}"
        )
    }

    fn program(&self) -> &'static str {
        "linux.uml"
    }
}
