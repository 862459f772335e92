//! One endpoint of a random lab: the path to it, who answers, and how it is asked.

/// Between the client and the server, in the place where TCP may end.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    /// The balancer's kind in the topology.
    pub(crate) kind: &'static str,
    /// Further keys of the balancer.
    pub(crate) keys: &'static str,
    /// From there to the server, one way.
    pub(crate) delay_ms: f64,
}

/// A path beside the others.
#[derive(Clone, Debug)]
pub(crate) struct ExtraPath {
    pub(crate) delay_ms: f64,
    /// The protocol that it is reserved for.
    pub(crate) protocol: Option<&'static str>,
    pub(crate) loss_percent: f64,
}

/// A bulk transfer on the way up, from and until so many seconds after the cue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk {
    pub(crate) at: f64,
    pub(crate) until: f64,
}

/// The transmitter on the way up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uplink {
    pub(crate) mbit: f64,
    pub(crate) queue_kib: f64,
    pub(crate) discipline: &'static str,
}

impl Uplink {
    /// How long `bytes` take, in milliseconds.
    pub(crate) fn millis(self, bytes: f64) -> f64 {
        bytes * 8.0 / self.mbit / 1e3
    }
}

/// A server's process that is stopped again and again, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeriodicStop {
    pub(crate) stopped_s: f64,
    pub(crate) running_s: f64,
}

/// Everything about an endpoint. Times are in milliseconds unless they say otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    /// One way.
    pub(crate) delay_ms: f64,
    pub(crate) jitter: String,
    /// In percent, both ways: too few to be a cause.
    pub(crate) loss_percent: f64,
    /// In percent, on the way up.
    pub(crate) corrupt_percent: f64,
    pub(crate) reorder_percent: f64,
    pub(crate) uplink: Option<Uplink>,
    pub(crate) extra_paths: Vec<ExtraPath>,
    pub(crate) bulk: Option<Bulk>,
    pub(crate) balancer: Option<Balancer>,
    pub(crate) processing_ms: f64,
    pub(crate) periodic_stop: Option<PeriodicStop>,
    pub(crate) scheme: &'static str,
    /// The TLS version, with a scheme that has one.
    pub(crate) tls: &'static str,
    pub(crate) new_connection: bool,
    pub(crate) ports: Vec<u16>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) reply: u64,
    pub(crate) interval_ms: u64,
    /// Of one experiment.
    pub(crate) seconds: f64,
}

impl Endpoint {
    /// The way there and back to whoever takes the connection.
    pub(crate) fn round_trip_ms(&self) -> f64 {
        2.0 * self.delay_ms
    }

    pub(crate) fn is_datagram(&self) -> bool {
        self.scheme == "udp"
    }

    fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    /// How long a block of its experiments takes, in seconds.
    pub(crate) fn block_seconds(&self) -> f64 {
        let scenarios = self.sizes.len() * self.ports.len().max(1);
        self.seconds * f64::from(u32::try_from(scenarios).expect("few"))
    }

    /// Its sites, links, balancer and traffic; `number` tells its addresses from others'.
    pub(crate) fn topology(&self, number: usize) -> String {
        let (name, host) = (self.name, 10 + number);
        let mut text = site(name, host);
        let entry = self.entry();
        if let Some(balancer) = &self.balancer {
            text += &site(&entry, 100 + number);
            text += &format!(
                "[[link]]\nname = \"{name}-in\"\na = \"{entry}\"\nb = \"{name}\"\n\
                 delay = \"{:.3}ms\"\n\n\
                 [[balancer]]\nname = \"{name}\"\nkind = \"{}\"\nsite = \"{entry}\"\n\
                 listen = 8080\nto = \"{name}:8080\"\n{}\n",
                balancer.delay_ms, balancer.kind, balancer.keys
            );
        }
        text += &self.link(&entry);
        text += &self.stopped_service();
        if let Some(Bulk { at, until }) = self.bulk {
            text += &format!(
                "[[traffic]]\nname = \"{name}\"\nfrom = \"client\"\nto = \"{entry}\"\n\
                 at = \"{at:.3}s\"\nuntil = \"{until:.3}s\"\n\n"
            );
        }
        text
    }

    /// The site that the client's connections lead to.
    fn entry(&self) -> String {
        match self.balancer {
            Some(_) => format!("{}-front", self.name),
            None => self.name.to_owned(),
        }
    }

    fn link(&self, entry: &str) -> String {
        let mut up = vec![format!("corrupt = \"{:.3}%\"", self.corrupt_percent)];
        up.push(format!("reorder = \"{:.3}%\"", self.reorder_percent));
        if let Some(uplink) = self.uplink {
            up.push(format!(
                "rate = \"{:.3}Mbit/s\", queue = \"{:.0}KiB\", discipline = \"{}\"",
                uplink.mbit, uplink.queue_kib, uplink.discipline
            ));
        }
        let mut text = format!(
            "[[link]]\nname = \"{}\"\na = \"client\"\nb = \"{entry}\"\ndelay = \"{:.3}ms\"\n\
             jitter = \"{}\"\nloss = \"{:.3}%\"\na_to_b = {{ {} }}\n\n",
            self.name,
            self.delay_ms,
            self.jitter,
            self.loss_percent,
            up.join(", ")
        );
        for extra_path in &self.extra_paths {
            let protocol = extra_path
                .protocol
                .map_or_else(String::new, |protocol| format!("only = \"{protocol}\"\n"));
            text += &format!(
                "[[link.path]]\n{protocol}a_to_b = {{ delay = \"{:.3}ms\", loss = \"{:.3}%\" }}\n\n",
                extra_path.delay_ms, extra_path.loss_percent
            );
        }
        text
    }

    /// Its part of the plan; `number` as in its topology.
    pub(crate) fn plan(&self, number: usize) -> String {
        let host = if self.balancer.is_some() { 100 } else { 10 } + number;
        let mut text = format!(
            "[[endpoint]]\nname = \"{}\"\nurl = \"{}://10.80.0.{host}:8080/\"\n\
             interval = \"{}ms\"\nduration = \"{:.3}s\"\nrequest_size = {:?}\n",
            self.name, self.scheme, self.interval_ms, self.seconds, self.sizes
        );
        if !self.is_datagram() {
            text += &format!(
                "response_size = {}\ncongestion = \"cubic\"\nnew_connection = {}\n",
                self.reply, self.new_connection
            );
        }
        if self.is_secure() {
            text += &format!("insecure = true\ntls = \"{}\"\n", self.tls);
        }
        if !self.ports.is_empty() {
            text += &format!("source_port = {:?}\n", self.ports);
        }
        text.push('\n');
        text
    }

    /// A service that answers and is stopped again and again.
    fn stopped_service(&self) -> String {
        let Some(PeriodicStop {
            stopped_s,
            running_s,
        }) = self.periodic_stop
        else {
            return String::new();
        };
        let neph = env!("CARGO_BIN_EXE_neph");
        let tls = if self.is_secure() { " --tls" } else { "" };
        let shell = format!(
            "{neph} reflect --listen 0.0.0.0:8080{tls} & p=$!; \
             while sleep {running_s:.3}; do kill -STOP $p; sleep {stopped_s:.3}; kill -CONT $p; done"
        );
        format!(
            "[[service]]\nname = \"{0}-peer\"\nsite = \"{0}\"\n\
             command = [\"sh\", \"-c\", \"{shell}\"]\nready = {{ tcp = 8080 }}\n\n",
            self.name
        )
    }

    /// Who answers, as the plan's lab has it; nothing where a service does.
    pub(crate) fn reflector(&self) -> String {
        if self.periodic_stop.is_some() {
            return String::new();
        }
        let mut flags = Vec::new();
        if self.is_secure() {
            flags.push("--tls".to_owned());
        }
        if self.processing_ms > 0.0 {
            flags.push("--think".to_owned());
            flags.push(format!("{:.3}ms", self.processing_ms));
        }
        let mut text = format!("[[lab.reflector]]\nsite = \"{}\"\n", self.name);
        if !flags.is_empty() {
            text += &format!("flags = {flags:?}\n");
        }
        text.push('\n');
        text
    }
}

/// A site that sends by CUBIC.
pub(crate) fn site(name: &str, host: usize) -> String {
    format!(
        "[[site]]\nname = \"{name}\"\naddress = \"10.80.0.{host}/24\"\n\
         congestion_control = \"cubic\"\n\n"
    )
}
