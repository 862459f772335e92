use std::fs;
use std::os::unix::fs::PermissionsExt;
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
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
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
fn certificate(folder: &Folder, name: &str) -> (ReflectorIdentity, Trust) {
    let self_signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let certificate = folder.write(&format!("{name}.pem"), &self_signed.cert.pem());
    let key = folder.write(
        &format!("{name}.key"),
        &self_signed.signing_key.serialize_pem(),
    );
    let trust = Trust::CaFile(certificate.clone());
    (ReflectorIdentity::Files { certificate, key }, trust)
}

/// Both sides of a handshake, in memory.
fn handshake(identity: &ReflectorIdentity, trust: &Trust) -> Result<[Channel; 2], ChannelError> {
    let version = None;
    let client_settings = client_config(version, trust).expect("a client's settings");
    let server_side = server_config(identity, version).expect("a server's settings");
    handshake_with(&client_settings, &server_side.config)
}

fn handshake_with(
    client_settings: &Arc<ClientConfig>,
    server_settings: &Arc<ServerConfig>,
) -> Result<[Channel; 2], ChannelError> {
    let mut client_channel = Channel::tls(client(client_settings, "localhost").expect("a name"));
    let mut server_channel = Channel::tls(server(server_settings).expect("a server"));
    let (mut to_server, mut to_client, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    client_channel.speak(&mut to_server)?;
    while !(client_channel.is_ready() && server_channel.is_ready()) {
        server_channel.open(&std::mem::take(&mut to_server), &mut plain, &mut to_client)?;
        client_channel.open(&std::mem::take(&mut to_client), &mut plain, &mut to_server)?;
    }
    Ok([client_channel, server_channel])
}

/// The kernel stamps the last byte of a read: what it belongs to must be known to the byte.
#[test]
fn a_read_that_spans_tls_records_has_no_message_timestamp() {
    let identity = ReflectorIdentity::SelfSigned(vec!["localhost".to_owned()]);
    let [mut client_channel, mut server_channel] =
        handshake(&identity, &Trust::AnyCertificate).expect("nothing is wrong");
    let mut sealed = |plain: &[u8]| {
        let mut out = Vec::new();
        client_channel.seal(plain, &mut out).expect("it is open");
        out
    };
    let mut plain = Vec::new();
    let mut is_at_record_end = |bytes: &[u8]| {
        let opened = server_channel.open(bytes, &mut plain, &mut Vec::new());
        opened.expect("it was sealed");
        server_channel.is_at_record_end()
    };
    assert!(is_at_record_end(&sealed(b"one")));
    let [two, three] = [sealed(b"two"), sealed(b"three")];
    let (record_start, record_end) = three.split_at(4);
    assert!(!is_at_record_end(&[&two, record_start].concat()));
    assert!(
        !is_at_record_end(&record_end[..record_end.len() - 1]),
        "its seal is not whole"
    );
    assert!(is_at_record_end(&record_end[record_end.len() - 1..]));
    assert!(is_at_record_end(
        &[sealed(b"four"), sealed(&vec![5; 40_000])].concat()
    ));
    assert_eq!(plain.len(), "onetwothreefour".len() + 40_000);
}

#[test]
fn a_certificate_is_trusted_only_through_its_ca() {
    let folder = Folder::new("believed");
    let (identity, its_own) = certificate(&folder, "its-own");
    let (_, other_trust) = certificate(&folder, "another");
    handshake(&identity, &its_own).expect("its own authority vouches for it");
    handshake(&identity, &Trust::AnyCertificate).expect("anything goes");
    for trust in [Trust::Public, other_trust] {
        let message = handshake(&identity, &trust)
            .expect_err("nobody vouches for it")
            .to_string();
        assert!(message.contains("certificate is not trusted"), "{message}");
        assert!(message.contains("--ca-file"), "{message}");
    }
}

#[test]
fn unreadable_ca_files_are_reported_by_path() {
    let folder = Folder::new("named");
    let empty = folder.write("empty.pem", "nothing in here\n");
    for path in [empty, folder.0.join("missing.pem")] {
        let result = client_config(None, &Trust::CaFile(path.clone()));
        let message = result.expect_err("no authorities").to_string();
        let expected = format!("TLS: authorities {}", path.display());
        assert!(message.starts_with(&expected), "{message}");
    }
}

/// A certificate made as `change` wants it, signed by itself; identity of a server and authority.
fn create_certificate(
    folder: &Folder,
    names: &[&str],
    change: impl FnOnce(&mut rcgen::CertificateParams),
) -> (ReflectorIdentity, Trust) {
    let names = names.iter().map(|name| (*name).to_owned());
    let mut params = rcgen::CertificateParams::new(names.collect::<Vec<_>>()).expect("names");
    change(&mut params);
    let pair = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&pair).expect("a certificate");
    let certificate = folder.write("made.pem", &certificate.pem());
    let key = folder.write("made.key", &pair.serialize_pem());
    let trust = Trust::CaFile(certificate.clone());
    (ReflectorIdentity::Files { certificate, key }, trust)
}

#[test]
fn each_certificate_error_has_its_own_message_and_remedy() {
    let folder = Folder::new("causes");
    let day = |year| rcgen::date_time_ymd(year, 1, 1);
    let local = ["localhost"];
    let refused = |(identity, trust): (ReflectorIdentity, Trust)| {
        let refused = handshake(&identity, &trust);
        refused.expect_err("it is not believed").to_string()
    };
    let message = refused(create_certificate(&folder, &local, |params| {
        (params.not_before, params.not_after) = (day(2019), day(2020));
    }));
    assert!(
        message.contains("it expired on 2020-01-01T00:00:00Z"),
        "{message}"
    );
    assert!(message.contains("renew it at the server"), "{message}");
    let message = refused(create_certificate(&folder, &local, |params| {
        (params.not_before, params.not_after) = (day(2090), day(2099));
    }));
    assert!(
        message.contains("it is valid from 2090-01-01T00:00:00Z on"),
        "{message}"
    );
    assert!(message.contains("clock"), "{message}");
    let message = refused(create_certificate(
        &folder,
        &["other.example", "192.0.2.1"],
        |_| {},
    ));
    assert!(
        message.contains("it is for other.example, 192.0.2.1 and not for localhost"),
        "{message}"
    );
    let message = refused(create_certificate(&folder, &[], |_| {}));
    assert!(message.contains("subjectAltName"), "{message}");
    let (identity, _) = create_certificate(&folder, &local, |_| {});
    let message = refused((identity, Trust::Public));
    assert!(
        message.contains("no authority that is known here issued it"),
        "{message}"
    );
    let message = refused(create_certificate(&folder, &local, |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    }));
    assert!(message.contains("not meant for servers"), "{message}");
}

/// `openssl req -x509` marks what it makes as an authority.
#[test]
fn a_ca_certificate_as_server_certificate_is_trusted_only_if_given() {
    let folder = Folder::new("authority");
    let authority = |params: &mut rcgen::CertificateParams| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    };
    let (identity, given_trust) = create_certificate(&folder, &["localhost"], authority);
    handshake(&identity, &given_trust).expect("it is given itself");
    let other = Folder::new("other-authority");
    let (_, other_trust) = create_certificate(&other, &["localhost"], authority);
    let message = handshake(&identity, &other_trust)
        .expect_err("another is given")
        .to_string();
    assert!(
        message.contains("give this very certificate with --ca-file"),
        "{message}"
    );
    let (identity, given_trust) = create_certificate(&folder, &["other.example"], authority);
    let message = handshake(&identity, &given_trust)
        .expect_err("its name is checked")
        .to_string();
    assert!(message.contains("not for localhost"), "{message}");
    let (identity, given_trust) = create_certificate(&folder, &["localhost"], |params| {
        authority(params);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    });
    let message = handshake(&identity, &given_trust)
        .expect_err("its validity is checked")
        .to_string();
    assert!(message.contains("it expired on"), "{message}");
}

fn fingerprint(identity: &ReflectorIdentity) -> Fingerprint {
    let side = server_config(identity, None);
    side.expect("a server's settings").fingerprint
}

#[test]
fn only_the_pinned_certificate_is_accepted_regardless_of_name_and_validity() {
    let folder = Folder::new("pinned");
    let (identity, its_own) = create_certificate(&folder, &["other.example"], |params| {
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    handshake(&identity, &its_own).expect_err("it has expired");
    let own_fingerprint = fingerprint(&identity);
    let other_fingerprint = fingerprint(&certificate(&folder, "another").0);
    handshake(&identity, &Trust::Pinned(vec![own_fingerprint])).expect("pinned");
    handshake(
        &identity,
        &Trust::Pinned(vec![other_fingerprint, own_fingerprint]),
    )
    .expect("one of the pinned");
    for pinned in [vec![], vec![other_fingerprint]] {
        let refused = handshake(&identity, &Trust::Pinned(pinned)).expect_err("not pinned");
        assert!(matches!(refused, ChannelError::Untrusted(_)));
        let text = refused.to_string();
        assert!(
            text.contains(&format!("fingerprint is {own_fingerprint}")),
            "{text}"
        );
        assert!(!text.contains("--insecure"), "{text}");
    }
    let refused =
        handshake(&identity, &Trust::Pinned(vec![other_fingerprint])).expect_err("not pinned");
    let expected = format!("pinned is {other_fingerprint}");
    assert!(refused.to_string().contains(&expected), "{refused}");
}

/// Whoever copies the pinned certificate has not got its key.
#[test]
fn a_server_without_the_key_of_the_pinned_certificate_is_refused() {
    let folder = Folder::new("stolen");
    let (identity, _) = certificate(&folder, "pinned");
    let ReflectorIdentity::Files { certificate, .. } = &identity else {
        unreachable!("it is in files")
    };
    let pem = std::fs::read(certificate).expect("it was written");
    let chain = certificates(&pem).expect("a certificate");
    let other = rcgen::KeyPair::generate().expect("a key");
    let other = PrivateKeyDer::try_from(other.serialize_der()).expect("PKCS #8");
    let other = ring::sign::any_supported_type(&other).expect("ring signs with it");
    let wrong_key = rustls::sign::CertifiedKey::new(chain, other);
    for version in [Some(TlsVersion::V12), Some(TlsVersion::V13)] {
        let server_settings =
            ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_protocol_versions(versions(version))
                .expect("versions")
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                    wrong_key.clone(),
                )));
        let pinned = Trust::Pinned(vec![fingerprint(&identity)]);
        let client_settings = client_config(version, &pinned).expect("a client's settings");
        let refused = handshake_with(&client_settings, &Arc::new(server_settings))
            .expect_err("its key is another");
        assert!(refused.to_string().contains("signature"), "{refused}");
    }
}

#[test]
fn a_private_key_readable_by_others_is_refused() {
    let folder = Folder::new("exposed");
    let (identity, _) = certificate(&folder, "exposed");
    let ReflectorIdentity::Files { key, .. } = &identity else {
        unreachable!("it is in files")
    };
    fs::set_permissions(key, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let refused = server_config(&identity, None).expect_err("every user can read it");
    let text = refused.to_string();
    assert!(
        text.contains("mode 0644") && text.contains("chmod 600"),
        "{text}"
    );
}

#[test]
fn an_unsupported_tls_version_is_reported_with_its_option() {
    let identity = ReflectorIdentity::SelfSigned(vec!["localhost".to_owned()]);
    let client_settings =
        client_config(Some(TlsVersion::V13), &Trust::AnyCertificate).expect("a client's settings");
    let server_side = server_config(&identity, Some(TlsVersion::V12)).expect("a server's settings");
    let server_settings = server_side.config;
    let mut client_channel = Channel::tls(client(&client_settings, "localhost").expect("a name"));
    let mut server_channel = Channel::tls(server(&server_settings).expect("a server"));
    let (mut to_server, mut to_client, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    client_channel.speak(&mut to_server).expect("a hello");
    server_channel
        .open(&to_server, &mut plain, &mut to_client)
        .expect_err("no version in common");
    let result = client_channel.open(&to_client, &mut plain, &mut Vec::new());
    let message = result.expect_err("an alert").to_string();
    assert!(message.contains("--tls-version"), "{message}");
}
