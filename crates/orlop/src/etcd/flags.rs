//! The flags of etcd 3.6, and their effect here.

use crate::go_flags::{
    Flag, Group,
    Kind::{List, Number, Switch, Text, Time},
    Use::{Honoured, Missing, Needless, Refused},
    flags,
};

/// The reasons why groups of flags have no effect.
const NO_CLUSTER: &str = "there is one process and one copy: share it, or use PostgreSQL with `orlop serve`";
const NO_DISCOVERY: &str = "there are no members to find";
const NO_GRPC: &str = "etcd's own protocol is not served";
const OTHER_STORAGE: &str = "the data is in SQLite, which needs no such setting";
const NO_USERS: &str = "there are no users of etcd";
const NO_TRACES: &str = "no traces are sent";
const NO_PROFILE: &str = "there is no profile of a Go program";
const NO_METRICS: &str = "there are no metrics of etcd";
const LOG: &str = "the log goes to standard error";
const OWN_SUITES: &str = "the cipher suites are those of this program";

flags! {
    pub(crate) FLAGS =
    "Member" {
        "name": Text, Honoured, "name of this process, also of its folder [default]";
        "data-dir": Text, Honoured, "folder with the databases, one for each --etcd-prefix [NAME.etcd]";
        "listen-client-urls": List, Honoured, "URLs to listen on for kube-apiserver [http://localhost:2379]";
        "advertise-client-urls": List, Honoured, "the same URLs; required with --listen-client-urls";
        "listen-peer-urls": List, Needless("nothing listens for other members"), "where other members would call";
        "unsafe-no-fsync": Switch, Honoured, "do not wait for the disk: a power loss may lose the last writes, a process crash loses none";
        "wal-dir": Text, Missing("", OTHER_STORAGE), "another folder for the log";
        "snapshot-count": Number, Needless(OTHER_STORAGE), "writes between snapshots";
        "heartbeat-interval": Number, Needless(NO_CLUSTER), "milliseconds between heartbeats";
        "election-timeout": Number, Needless(NO_CLUSTER), "milliseconds until an election";
        "initial-election-tick-advance": Switch, Needless(NO_CLUSTER), "begin elections early";
        "listen-client-http-urls": List, Missing("", "HTTP is served at --listen-client-urls"), "other places for HTTP";
        "max-snapshots": Number, Needless(OTHER_STORAGE), "snapshots to keep";
        "max-wals": Number, Needless(OTHER_STORAGE), "logs to keep";
        "memory-mlock": Switch, Missing("false", OTHER_STORAGE), "keep the database in memory";
        "quota-backend-bytes": Number, Missing("0", "the database grows as long as the disk has room"), "largest size of the database";
        "backend-bbolt-freelist-type": Text, Needless(OTHER_STORAGE), "a detail of etcd's storage";
        "backend-batch-interval": Time, Needless(OTHER_STORAGE), "how long a commit waits for others";
        "backend-batch-limit": Number, Needless(OTHER_STORAGE), "writes of a commit";
        "max-txn-ops": Number, Needless(NO_GRPC), "steps of a transaction";
        "max-request-bytes": Number, Needless(NO_GRPC), "bytes of a request";
        "max-concurrent-streams": Number, Needless(NO_GRPC), "streams of a connection";
        "grpc-keepalive-min-time": Time, Needless(NO_GRPC), "how often clients may ping";
        "grpc-keepalive-interval": Time, Needless(NO_GRPC), "how often clients are pinged";
        "grpc-keepalive-timeout": Time, Needless(NO_GRPC), "how long a ping may take";
        "socket-reuse-port": Switch, Missing("false", "the port is for one process"), "SO_REUSEPORT";
        "socket-reuse-address": Switch, Needless("the address can be taken again at once"), "SO_REUSEADDR";
        "enable-grpc-gateway": Switch, Missing("false", NO_GRPC), "serve JSON beside gRPC";
        "raft-read-timeout": Time, Needless(NO_CLUSTER), "of connections between members";
        "raft-write-timeout": Time, Needless(NO_CLUSTER), "of connections between members";
        "feature-gates": Text, Missing("", "there are no features of etcd to switch"), "features of etcd";
    }
    "Clustering" {
        "initial-advertise-peer-urls": List, Needless(NO_CLUSTER), "where other members would find it";
        "initial-cluster": Text, Needless(NO_CLUSTER), "all members";
        "initial-cluster-state": Text, Needless(NO_CLUSTER), "new or existing";
        "initial-cluster-token": Text, Needless(NO_CLUSTER), "name of the cluster";
        "discovery": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-token": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-endpoints": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-dial-timeout": Time, Needless(NO_DISCOVERY), "how to find members";
        "discovery-request-timeout": Time, Needless(NO_DISCOVERY), "how to find members";
        "discovery-keepalive-time": Time, Needless(NO_DISCOVERY), "how to find members";
        "discovery-keepalive-timeout": Time, Needless(NO_DISCOVERY), "how to find members";
        "discovery-insecure-transport": Switch, Needless(NO_DISCOVERY), "how to find members";
        "discovery-insecure-skip-tls-verify": Switch, Needless(NO_DISCOVERY), "how to find members";
        "discovery-cert": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-key": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-cacert": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-user": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-password": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-fallback": Text, Needless(NO_DISCOVERY), "how to find members";
        "discovery-proxy": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-srv": Text, Missing("", NO_DISCOVERY), "how to find members";
        "discovery-srv-name": Text, Missing("", NO_DISCOVERY), "how to find members";
        "strict-reconfig-check": Switch, Needless(NO_CLUSTER), "refuse changes that lose the quorum";
        "pre-vote": Switch, Needless(NO_CLUSTER), "ask before an election";
        "auto-compaction-retention": Text, Missing("0", "kube-apiserver compacts"), "what to keep of history";
        "auto-compaction-mode": Text, Needless("kube-apiserver compacts"), "periodic or revision";
        "v2-deprecation": Text, Needless(NO_GRPC), "how to treat data of etcd 2";
        "force-new-cluster": Switch, Missing("false", NO_CLUSTER), "begin a cluster of one";
        "max-learners": Number, Needless(NO_CLUSTER), "members that only learn";
    }
    "Security" {
        "cert-file": Text, Honoured, "serving certificate, for https";
        "key-file": Text, Honoured, "key of --cert-file";
        "client-cert-auth": Switch, Honoured, "accept only clients with a certificate of --trusted-ca-file";
        "trusted-ca-file": Text, Honoured, "CAs of client certificates; if given, clients need one";
        "auto-tls": Switch, Refused("give --cert-file and --key-file"), "generate a certificate";
        "client-cert-file": Text, Missing("", NO_CLUSTER), "certificate to show to members";
        "client-key-file": Text, Missing("", NO_CLUSTER), "key of it";
        "client-crl-file": Text, Refused("certificate revocation lists are not supported"), "certificate revocation list";
        "client-cert-allowed-hostname": Text, Refused("every certificate of --trusted-ca-file is accepted"), "name that a client's certificate must have";
        "peer-cert-file": Text, Needless(NO_CLUSTER), "certificate for members";
        "peer-key-file": Text, Needless(NO_CLUSTER), "key of it";
        "peer-client-cert-auth": Switch, Needless(NO_CLUSTER), "members need certificates";
        "peer-client-cert-file": Text, Needless(NO_CLUSTER), "certificate to show to members";
        "peer-client-key-file": Text, Needless(NO_CLUSTER), "key of it";
        "peer-trusted-ca-file": Text, Needless(NO_CLUSTER), "CAs of members";
        "peer-cert-allowed-cn": Text, Needless(NO_CLUSTER), "CN of members";
        "peer-cert-allowed-hostname": Text, Needless(NO_CLUSTER), "name of members";
        "peer-auto-tls": Switch, Needless(NO_CLUSTER), "generate a certificate for members";
        "peer-crl-file": Text, Needless(NO_CLUSTER), "certificate revocation list for members";
        "peer-skip-client-san-verification": Switch, Needless(NO_CLUSTER), "do not verify the names of members";
        "self-signed-cert-validity": Number, Needless("no certificate is generated"), "years that generated certificates are valid";
        "cipher-suites": List, Missing("", OWN_SUITES), "cipher suites to offer";
        "cors": List, Missing("*", "no CORS headers are sent"), "origins that browsers may call from";
        "host-whitelist": List, Missing("*", "every Host header is taken"), "Host headers to take";
        "tls-min-version": Text, Missing("TLS1.2", "TLS 1.2 and 1.3 are offered"), "oldest version of TLS";
        "tls-max-version": Text, Missing("TLS1.3", "TLS 1.2 and 1.3 are offered"), "newest version of TLS";
        "auth-token": Text, Missing("simple", NO_USERS), "kind of tokens";
        "bcrypt-cost": Number, Needless(NO_USERS), "cost of passwords";
        "auth-token-ttl": Number, Needless(NO_USERS), "life of tokens";
    }
    "Logging" {
        "log-level": Text, Honoured, "debug, info, warn, error, dpanic, panic or fatal [info]";
        "log-format": Text, Honoured, "json or console [json]";
        "logger": Text, Needless(LOG), "zap";
        "log-outputs": List, Missing("default", LOG), "where the log goes";
        "enable-log-rotation": Switch, Missing("false", LOG), "rotate the log file";
        "log-rotation-config-json": Text, Needless(LOG), "parameters of log rotation";
        "warning-unary-request-duration": Time, Needless(NO_GRPC), "how long a request may take without a warning";
    }
    "Profiling and further" {
        "enable-pprof": Switch, Missing("false", NO_PROFILE), "serve /debug/pprof";
        "metrics": Text, Needless(NO_METRICS), "basic or extensive";
        "listen-metrics-urls": List, Missing("", NO_METRICS), "where metrics are served";
        "enable-distributed-tracing": Switch, Missing("false", NO_TRACES), "send traces";
        "distributed-tracing-address": Text, Needless(NO_TRACES), "address of the trace collector";
        "distributed-tracing-service-name": Text, Needless(NO_TRACES), "service name in traces";
        "distributed-tracing-instance-id": Text, Needless(NO_TRACES), "instance in traces";
        "distributed-tracing-sampling-rate": Number, Needless(NO_TRACES), "samples per million";
        "corrupt-check-time": Time, Needless(NO_CLUSTER), "how often members compare";
        "compact-hash-check-time": Time, Needless(NO_CLUSTER), "how often members compare";
        "compaction-batch-limit": Number, Needless("kube-apiserver compacts"), "revisions of a step";
        "compaction-sleep-interval": Time, Needless("kube-apiserver compacts"), "between two steps";
        "watch-progress-notify-interval": Time, Needless(NO_GRPC), "interval of progress notifications";
        "warning-apply-duration": Time, Needless(NO_GRPC), "how long a write may take without a warning";
        "bootstrap-defrag-threshold-megabytes": Number, Needless(OTHER_STORAGE), "when to defragment";
        "downgrade-check-time": Time, Needless(NO_CLUSTER), "how often members look at versions";
        "snapshot-catchup-entries": Number, Needless(NO_CLUSTER), "what slow members get";
        "config-file": Text, Refused("give flags"), "file with all settings";
    }
}
