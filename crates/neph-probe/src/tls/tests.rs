use std::fs;
use std::path::PathBuf;

use super::*;
use crate::channel::{Channel, ChannelError};

/// Files of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("neph-tls-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("write");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of a temporary folder disturbs nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A certificate for `localhost` in files: identity of a server, and authority of a client.
fn certificate(folder: &Folder, name: &str) -> (Identity, Trust) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let certificate = folder.write(&format!("{name}.pem"), &made.cert.pem());
    let key = folder.write(&format!("{name}.key"), &made.signing_key.serialize_pem());
    let trust = Trust::File(certificate.clone());
    (Identity::Files { certificate, key }, trust)
}

/// Both sides of a handshake, in memory.
fn shake(identity: &Identity, trust: &Trust) -> Result<[Channel; 2], ChannelError> {
    let version = TlsVersion::Any;
    let ours = client_config(version, trust).expect("a client's settings");
    let theirs = server_config(identity, version).expect("a server's settings");
    let mut ours = Channel::tls(client(&ours, "localhost").expect("a name"));
    let mut theirs = Channel::tls(server(&theirs).expect("a server"));
    let (mut to_them, mut to_us, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    ours.speak(&mut to_them)?;
    while !(ours.is_ready() && theirs.is_ready()) {
        theirs.open(&std::mem::take(&mut to_them), &mut plain, &mut to_us)?;
        ours.open(&std::mem::take(&mut to_us), &mut plain, &mut to_them)?;
    }
    Ok([ours, theirs])
}

/// The kernel stamps the last byte of a read: what it belongs to must be known to the byte.
#[test]
fn a_read_that_goes_on_into_the_next_record_has_no_stamp_of_its_messages() {
    let identity = Identity::SelfSigned(vec!["localhost".to_owned()]);
    let [mut ours, mut theirs] = shake(&identity, &Trust::Anything).expect("nothing is wrong");
    let mut sealed = |plain: &[u8]| {
        let mut out = Vec::new();
        ours.seal(plain, &mut out).expect("it is open");
        out
    };
    let mut plain = Vec::new();
    let mut ends_whole = |bytes: &[u8]| {
        let opened = theirs.open(bytes, &mut plain, &mut Vec::new());
        opened.expect("it was sealed");
        theirs.ends_whole()
    };
    assert!(ends_whole(&sealed(b"one")));
    let [two, three] = [sealed(b"two"), sealed(b"three")];
    let (begun, rest) = three.split_at(4);
    assert!(!ends_whole(&[&two, begun].concat()));
    assert!(
        !ends_whole(&rest[..rest.len() - 1]),
        "its seal is not whole"
    );
    assert!(ends_whole(&rest[rest.len() - 1..]));
    assert!(ends_whole(
        &[sealed(b"four"), sealed(&vec![5; 40_000])].concat()
    ));
    assert_eq!(plain.len(), "onetwothreefour".len() + 40_000);
}

#[test]
fn a_certificate_is_believed_by_its_authority_or_not_at_all() {
    let folder = Folder::new("believed");
    let (identity, its_own) = certificate(&folder, "its-own");
    let (_, another) = certificate(&folder, "another");
    shake(&identity, &its_own).expect("its own authority vouches for it");
    shake(&identity, &Trust::Anything).expect("anything goes");
    for trust in [Trust::Public, another] {
        let told = shake(&identity, &trust)
            .expect_err("nobody vouches for it")
            .to_string();
        assert!(told.contains("certificate is not trusted"), "{told}");
        assert!(told.contains("--ca-file"), "{told}");
    }
}

#[test]
fn authorities_that_cannot_be_read_are_named() {
    let folder = Folder::new("named");
    let empty = folder.write("empty.pem", "nothing in here\n");
    for path in [empty, folder.0.join("missing.pem")] {
        let told = client_config(TlsVersion::Any, &Trust::File(path.clone()));
        let told = told.expect_err("no authorities").to_string();
        let named = format!("TLS: authorities {}", path.display());
        assert!(told.starts_with(&named), "{told}");
    }
}
