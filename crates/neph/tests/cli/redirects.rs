//! HTTP redirects that are followed before a measurement, by `neph ping` and by a plan.

use std::fs;

use crate::changed_addresses::{experiments, json};
use crate::neph::{TestFolder, neph};
use crate::servers::{Server, nginx};

fn redirecting(test: &str, folder: &tempfile::TempDir) -> Option<Server> {
    let inside = "location /ok { return 200 ok; } location /moved { return 302 /again; } \
                  location /again { return 301 /ok; } location /loop { return 302 /loop; } \
                  location /ftp { return 302 ftp://127.0.0.1/; }";
    nginx(test, folder, inside)
}

#[test]
fn follow_measures_the_last_target_of_a_redirect_chain() {
    let test = "follow_measures_the_last_target_of_a_redirect_chain";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = redirecting(test, &folder) else {
        return;
    };
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", server.port);
    let ping = |path: &str| {
        let target = at(path);
        let some = ["ping", &target, "--no-icmp", "-c", "4", "-i", "20ms"];
        neph(some.into_iter().chain(["--follow"]))
    };
    let ran = ping("/moved");
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let printed = format!("{}{}", ran.out, ran.err);
    for expected in [
        format!("followed: 302 from {} to {}", at("/moved"), at("/again")),
        format!("followed: 301 from {} to {}", at("/again"), at("/ok")),
    ] {
        assert!(printed.contains(&expected), "{expected}: {printed}");
    }
    assert!(printed.contains("4 replies"), "{printed}");
    let refused = [("/loop", "redirects again"), ("/ftp", "ftp")];
    for (path, why) in refused {
        let ran = ping(path);
        assert_eq!(ran.status, 1, "{path}: {}", ran.out);
        assert!(ran.err.contains(why), "{path}: {}", ran.err);
    }
    let ran = neph(["ping", "tcp://127.0.0.1:9", "--follow", "-c", "1"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
}

#[test]
fn a_plan_that_follows_redirects_stores_them_as_events() {
    let test = "a_plan_that_follows_redirects_stores_them_as_events";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = redirecting(test, &folder) else {
        return;
    };
    let test_folder = TestFolder::empty();
    let plan = format!(
        "version = 1\nname = \"moved\"\nblocks = 1\ninterval = \"20ms\"\nmessages = 5\n\
         follow = true\n[[endpoint]]\nname = \"moved\"\nurl = \"http://127.0.0.1:{}/moved\"\n",
        server.port
    );
    fs::write(test_folder.path("p.toml"), plan).expect("a file");
    let path = test_folder.path("p.toml");
    let ran = test_folder.neph(["run", path.to_str().expect("a path")]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let id = experiments(&test_folder).remove(0);
    let shown = json(&test_folder, &["show", &id]);
    let events = shown["events"].to_string();
    assert!(events.contains("redirected"), "{events}");
    assert!(
        events.contains("/moved") && events.contains("/ok"),
        "{events}"
    );
    let stdout = test_folder.neph(["show", &id]).out;
    assert!(stdout.contains("5 replies"), "{stdout}");
}
