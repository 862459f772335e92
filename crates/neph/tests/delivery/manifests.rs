//! The manifests of Kubernetes: what its API takes, with arguments that neph takes, and pods that the
//! security profile of their namespace allows.

use std::fs;

use neph_text::{Node, Problems, Source, Value, parse_yaml};

use crate::prerequisites::{neph, root, try_run};

/// The objects of a manifest.
fn objects(file: &str) -> Vec<Node> {
    let path = root().join("deploy/kubernetes").join(file);
    let text = fs::read_to_string(path).expect("a manifest");
    let documents = text.split("\n---\n");
    let parse = |text: &str| {
        let source = Source::new(file, text);
        let problems = Problems::new(&source);
        let node = parse_yaml(&problems);
        assert!(
            problems.is_empty(),
            "{file}: {:?}",
            problems.verdict(Some(()))
        );
        node
    };
    documents.map(parse).collect()
}

/// What stands at a path of keys and numbers of a list.
fn value_at<'n>(node: &'n Node, path: &str) -> Option<&'n Value> {
    let mut value = &node.value;
    for part in path.split('.') {
        value = match value {
            Value::Table(table) => &table.get(part)?.node.value,
            Value::List(list) => &list.get(part.parse::<usize>().ok()?)?.value,
            _ => return None,
        };
    }
    Some(value)
}

fn text(node: &Node, path: &str) -> String {
    match value_at(node, path) {
        Some(Value::Text(text)) => text.clone(),
        other => panic!("{path}: {other:?}"),
    }
}

fn object(file: &str, kind: &str) -> Node {
    let mut nodes = objects(file).into_iter();
    nodes.find(|node| text(node, "kind") == kind).expect(kind)
}

/// Reflector and agent: the file, the kind of what starts pods.
const PODS: [(&str, &str); 2] = [
    ("reflector.yaml", "Deployment"),
    ("agent.yaml", "DaemonSet"),
];
const CONTAINER: &str = "spec.template.spec.containers.0";

fn list(node: &Node, path: &str) -> Vec<String> {
    let Some(Value::List(list)) = value_at(node, path) else {
        panic!("{path} is no list");
    };
    let texts = list.iter().map(|node| match &node.value {
        Value::Text(text) => text.clone(),
        other => panic!("{path}: {other:?}"),
    });
    texts.collect()
}

#[test]
fn the_arguments_in_manifests_are_accepted_by_the_program() {
    for (file, kind) in PODS {
        let pods = object(file, kind);
        let arguments = list(&pods, &format!("{CONTAINER}.args"));
        let arguments = arguments.iter().map(|argument| {
            argument
                .replace("$(NODE_NAME)", "node")
                .replace("$(NEPH_CONTROLLER)", "wss://control.example:7443")
        });
        let (is_ok, printed) = try_run(neph().args(arguments).arg("--help"));
        assert!(is_ok, "{file}: {printed}");
    }
    let agent = object("agent.yaml", "DaemonSet");
    let controller = text(&agent, &format!("{CONTAINER}.env.1.value"));
    assert_eq!(controller, "wss://control.example:7443");
    let node = text(
        &agent,
        &format!("{CONTAINER}.env.0.valueFrom.fieldRef.fieldPath"),
    );
    assert_eq!(node, "spec.nodeName");
}

#[test]
fn the_image_is_that_of_this_version() {
    for (file, kind) in PODS {
        let image = text(&object(file, kind), &format!("{CONTAINER}.image"));
        assert_eq!(
            image,
            format!("localhost/neph:{}", env!("CARGO_PKG_VERSION"))
        );
    }
}

#[test]
fn the_reflector_s_pods_are_restricted_and_get_no_token() {
    let namespace = object("reflector.yaml", "Namespace");
    let Some(Value::Table(labels)) = value_at(&namespace, "metadata.labels") else {
        panic!("labels");
    };
    let enforced = labels
        .get("pod-security.kubernetes.io/enforce")
        .expect("a profile");
    assert_eq!(enforced.node.value, Value::Text("restricted".to_owned()));
    // What the profile asks for: kubernetes.io/docs/concepts/security/pod-security-standards.
    let pods = object("reflector.yaml", "Deployment");
    let spec = "spec.template.spec";
    let on = Some(&Value::Switch(true));
    let off = Some(&Value::Switch(false));
    assert_eq!(
        value_at(&pods, &format!("{spec}.securityContext.runAsNonRoot")),
        on
    );
    let seccomp = text(
        &pods,
        &format!("{spec}.securityContext.seccompProfile.type"),
    );
    assert_eq!(seccomp, "RuntimeDefault");
    let context = format!("{CONTAINER}.securityContext");
    assert_eq!(
        value_at(&pods, &format!("{context}.allowPrivilegeEscalation")),
        off
    );
    assert_eq!(
        list(&pods, &format!("{context}.capabilities.drop")),
        ["ALL"]
    );
    assert_eq!(
        value_at(&pods, &format!("{context}.capabilities.add")),
        None
    );
    for key in ["hostNetwork", "hostPID", "hostIPC", "volumes"] {
        assert_eq!(value_at(&pods, &format!("{spec}.{key}")), None, "{key}");
    }
    for (file, kind) in PODS {
        let pods = object(file, kind);
        assert_eq!(
            value_at(&pods, &format!("{spec}.automountServiceAccountToken")),
            off,
            "{file}"
        );
        let account = text(&object(file, "ServiceAccount"), "metadata.name");
        assert_eq!(
            text(&pods, &format!("{spec}.serviceAccountName")),
            account,
            "{file}"
        );
    }
}

#[test]
fn all_selected_and_referenced_objects_exist() {
    let pods = object("reflector.yaml", "Deployment");
    let service = object("reflector.yaml", "Service");
    let ingress = object("reflector.yaml", "Ingress");
    let labels = value_at(&pods, "spec.template.metadata.labels");
    let (Some(Value::Table(labels)), Some(Value::Table(selected))) =
        (labels, value_at(&service, "spec.selector"))
    else {
        panic!("labels");
    };
    for entry in &selected.entries {
        let label = labels.get(&entry.key).map(|label| &label.node.value);
        assert_eq!(label, Some(&entry.node.value), "{}", entry.key);
    }
    let port = |at: usize, key: &str| text(&pods, &format!("{CONTAINER}.ports.{at}.{key}"));
    let names = [port(0, "name"), port(1, "name")];
    assert_eq!(text(&service, "spec.ports.0.targetPort"), names[0]);
    assert_eq!(text(&service, "spec.ports.1.targetPort"), names[1]);
    for probe in ["readinessProbe", "livenessProbe"] {
        let requested = text(&pods, &format!("{CONTAINER}.{probe}.httpGet.port"));
        assert_eq!(requested, names[0], "{probe}");
    }
    let backend = "spec.rules.0.http.paths.0.backend.service";
    let backend_name = text(&ingress, &format!("{backend}.name"));
    assert_eq!(backend_name, text(&service, "metadata.name"));
    let requested = text(&ingress, &format!("{backend}.port.name"));
    assert_eq!(requested, text(&service, "spec.ports.0.name"));
}
