//! The flags of kube-apiserver 1.35, and their effect here.

use crate::go_flags::{
    Flag, Group,
    Kind::{Address, Each, Level, List, Number, Pairs, Real, Switch, Text, Time},
    Use::{Deprecated, Honoured, Missing, Needless, Refused},
    flags,
};

/// The reasons why groups of flags have no effect.
const NO_BATCHES: &str = "waiting events are written together, and no event is truncated";
const NO_AUDIT_WEBHOOK: &str = "there is no audit webhook";
const NO_OIDC: &str = "OpenID Connect is not supported";
const NO_TOKEN_WEBHOOK: &str = "token webhooks are not supported";
const NO_EMULATION: &str = "only the behaviour of 1.35 is served";
const NO_KUBELET: &str = "no kubelet is called";
const NO_PEERS: &str = "servers of one database serve the same APIs, and need no proxy among them";
const NO_LEADERS: &str = "no leader is elected by the server";
const NO_CACHE: &str = "reads come from the database, which needs no cache in front";
const NO_POLLS: &str = "the database is not polled for its metrics";
const NO_PROFILE: &str = "Go profiles are not supported";
const NO_AGGREGATION: &str = "requests are not forwarded to other API servers";

flags! {
    pub(crate) FLAGS =
    "Generic" {
        "advertise-address": Address, Honoured, "address of the kubernetes Service's endpoint [the bind address, unless it is a loopback or unspecified one]";
        "cors-allowed-origins": List, Missing("", "no CORS headers are sent"), "origins that browsers may call from";
        "emulated-version": List, Missing("1.35", NO_EMULATION), "the version to behave like";
        "emulation-forward-compatible": Switch, Missing("false", NO_EMULATION), "also serve later versions of an emulated API";
        "external-hostname": Text, Missing("", "documents name no host"), "host in links to this server";
        "feature-gates": Pairs, Honoured, "NAME=true|false; unknown names are refused, values that cannot be changed give a warning";
        "goaway-chance": Real, Honoured, "probability that a request ends its HTTP/2 connection with GOAWAY, 0 to 0.02 [0]";
        "livez-grace-period": Time, Needless("a start takes milliseconds"), "how long a start may fail /livez";
        "max-mutating-requests-inflight": Number, Honoured, "maximum number of mutating requests in flight, 0 for no limit [200]";
        "max-requests-inflight": Number, Honoured, "maximum number of other requests in flight, except watches, 0 for no limit [400]";
        "min-compatibility-version": List, Missing("1.35", NO_EMULATION), "the oldest version to be compatible with";
        "min-request-timeout": Number, Honoured, "minimum duration in seconds of a watch without timeoutSeconds [1800]";
        "request-timeout": Time, Honoured, "request timeout, unless the client sets a shorter one [1m]";
        "runtime-config-emulation-forward-compatible": Switch, Missing("false", NO_EMULATION), "serve later versions of the APIs of --runtime-config, too";
        "shutdown-delay-duration": Time, Honoured, "time between the failure of /readyz and the stop [0]";
        "shutdown-send-retry-after": Switch, Honoured, "answer new requests with 429 while the server stops [false]";
        "shutdown-watch-termination-grace-period": Time, Missing("0", "watches end at once in a stop"), "how long watches may go on in a stop";
        "storage-initialization-timeout": Time, Honoured, "time to wait for the server of --etcd-servers [1m]";
        "strict-transport-security-directives": List, Missing("", "no such header is sent"), "directives of the Strict-Transport-Security header";
    }
    "Etcd" {
        "default-watch-cache-size": Number, Deprecated("watch caches are sized automatically and this flag will be removed in a future version"), "size of what is kept in memory";
        "delete-collection-workers": Number, Needless("a collection is deleted in batches"), "workers of a delete of a collection";
        "enable-garbage-collector": Switch, Needless("finalizers of the garbage collector are always written"), "must be as in the controller manager";
        "encryption-provider-config": Text, Refused("objects are stored as they are: encrypt the disk"), "how to encrypt what is stored";
        "encryption-provider-config-automatic-reload": Switch, Refused("objects are stored as they are: encrypt the disk"), "look at that file again";
        "etcd-cafile": Text, Honoured, "CAs of the server of --etcd-servers, for https";
        "etcd-certfile": Text, Honoured, "client certificate for that server";
        "etcd-compaction-interval": Time, Honoured, "interval of compaction and retention of history, 0 for never [5m]";
        "etcd-count-metric-poll-period": Time, Needless(NO_POLLS), "how often objects are counted";
        "etcd-db-metric-poll-interval": Time, Needless(NO_POLLS), "how often the database's size is asked for";
        "etcd-healthcheck-timeout": Time, Needless("health does not ask the database"), "how long the health check may take";
        "etcd-keyfile": Text, Honoured, "key of that certificate";
        "etcd-prefix": Text, Honoured, "database of that server; servers with the same prefix share it [/registry]";
        "etcd-readycheck-timeout": Time, Needless("readiness does not ask the database"), "how long the check of readiness may take";
        "etcd-servers": List, Honoured, "addresses of the `etcd` of this program, as http://HOST:PORT; the first that answers is used";
        "etcd-servers-overrides": List, Refused("all objects are in one database"), "other servers for some resources";
        "lease-reuse-duration-seconds": Number, Needless("nothing here has a lease of etcd"), "how long a lease of etcd is used again";
        "storage-backend": Text, Honoured, "etcd3 or empty";
        "storage-media-type": Text, Honoured, "a media type of Kubernetes; objects are stored as JSON in any case";
        "watch-cache": Switch, Needless(NO_CACHE), "keep objects in memory";
        "watch-cache-sizes": List, Needless(NO_CACHE), "sizes of that memory";
    }
    "Secure serving" {
        "bind-address": Address, Honoured, "address to listen on [0.0.0.0]";
        "cert-dir": Text, Honoured, "folder with apiserver.crt and apiserver.key, which are created if missing [/var/run/kubernetes]";
        "disable-http2-serving": Switch, Missing("false", "HTTP/2 is served"), "serve HTTP/1.1 only";
        "http2-max-streams-per-connection": Number, Honoured, "maximum number of concurrent streams of an HTTP/2 connection [250]";
        "permit-address-sharing": Switch, Needless("the address can be taken again at once"), "SO_REUSEADDR";
        "permit-port-sharing": Switch, Missing("false", "the port is for one process"), "SO_REUSEPORT";
        "secure-port": Number, Honoured, "port to listen on, 1 to 65535 [6443]";
        "tls-cert-file": Text, Honoured, "serving certificate, instead of the one in --cert-dir";
        "tls-cipher-suites": List, Missing("", "the cipher suites are those of this program"), "cipher suites to offer";
        "tls-min-version": Text, Missing("VersionTLS12", "TLS 1.2 and 1.3 are offered"), "oldest version of TLS to offer";
        "tls-private-key-file": Text, Honoured, "key of --tls-cert-file";
        "tls-sni-cert-key": Each, Refused("one certificate is served for all names"), "serving certificates by server name";
    }
    "Auditing" {
        "audit-log-batch-buffer-size": Number, Missing("10000", NO_BATCHES), "events that wait for a batch";
        "audit-log-batch-max-size": Number, Missing("1", NO_BATCHES), "events of a batch";
        "audit-log-batch-max-wait": Time, Missing("0", NO_BATCHES), "how long a batch waits";
        "audit-log-batch-throttle-burst": Number, Missing("0", NO_BATCHES), "batches at once";
        "audit-log-batch-throttle-enable": Switch, Missing("false", NO_BATCHES), "limit the rate of batches";
        "audit-log-batch-throttle-qps": Real, Missing("0", NO_BATCHES), "batches per second";
        "audit-log-compress": Switch, Honoured, "compress rotated files with gzip";
        "audit-log-format": Text, Honoured, "format of the log: json";
        "audit-log-maxage": Number, Honoured, "days to keep rotated files [for ever]";
        "audit-log-maxbackup": Number, Honoured, "number of rotated files to keep [all]";
        "audit-log-maxsize": Number, Honoured, "size in megabytes at which the file is rotated [100]";
        "audit-log-mode": Text, Honoured, "whether responses wait for the log: batch, blocking, blocking-strict [blocking]";
        "audit-log-path": Text, Honoured, "file of the audit log; - for standard output";
        "audit-log-truncate-enabled": Switch, Missing("false", NO_BATCHES), "cut events";
        "audit-log-truncate-max-batch-size": Number, Missing("10485760", NO_BATCHES), "bytes of a batch";
        "audit-log-truncate-max-event-size": Number, Missing("102400", NO_BATCHES), "bytes of an event";
        "audit-log-version": Text, Honoured, "version of the events: audit.k8s.io/v1";
        "audit-policy-file": Text, Honoured, "audit policy, an audit.k8s.io/v1 Policy; without it nothing is logged";
        "audit-webhook-batch-buffer-size": Number, Missing("10000", NO_AUDIT_WEBHOOK), "events that wait for a batch";
        "audit-webhook-batch-initial-backoff": Time, Deprecated("Deprecated, use --audit-webhook-initial-backoff instead."), "wait before a second attempt";
        "audit-webhook-batch-max-size": Number, Missing("400", NO_AUDIT_WEBHOOK), "events of a batch";
        "audit-webhook-batch-max-wait": Time, Missing("30s", NO_AUDIT_WEBHOOK), "how long a batch waits";
        "audit-webhook-batch-throttle-burst": Number, Missing("15", NO_AUDIT_WEBHOOK), "batches at once";
        "audit-webhook-batch-throttle-enable": Switch, Missing("true", NO_AUDIT_WEBHOOK), "limit the rate of batches";
        "audit-webhook-batch-throttle-qps": Real, Missing("10", NO_AUDIT_WEBHOOK), "batches per second";
        "audit-webhook-config-file": Text, Missing("", NO_AUDIT_WEBHOOK), "kubeconfig of the webhook";
        "audit-webhook-initial-backoff": Time, Missing("10s", NO_AUDIT_WEBHOOK), "wait before a second attempt";
        "audit-webhook-mode": Text, Missing("batch", NO_AUDIT_WEBHOOK), "whether requests wait for the webhook";
        "audit-webhook-truncate-enabled": Switch, Missing("false", NO_AUDIT_WEBHOOK), "cut events";
        "audit-webhook-truncate-max-batch-size": Number, Missing("10485760", NO_AUDIT_WEBHOOK), "bytes of a batch";
        "audit-webhook-truncate-max-event-size": Number, Missing("102400", NO_AUDIT_WEBHOOK), "bytes of an event";
        "audit-webhook-version": Text, Missing("audit.k8s.io/v1", NO_AUDIT_WEBHOOK), "version of the events";
    }
    "Features" {
        "contention-profiling": Switch, Missing("false", NO_PROFILE), "profile locks";
        "debug-socket-path": Text, Missing("", NO_PROFILE), "socket for profiles";
        "enable-priority-and-fairness": Switch, Needless("requests are limited by --max-requests-inflight and --max-mutating-requests-inflight; responses name flow schemas, requests are not queued"), "queue requests by flow schemas";
        "profiling": Switch, Needless(NO_PROFILE), "serve /debug/pprof";
    }
    "Authentication" {
        "anonymous-auth": Switch, Honoured, "accept requests without credentials as system:anonymous [true]";
        "api-audiences": List, Honoured, "audiences of tokens for this server [the issuers]";
        "authentication-config": Text, Honoured, "file with an AuthenticationConfiguration; anonymous is supported, jwt is refused";
        "authentication-token-webhook-cache-ttl": Time, Missing("2m0s", NO_TOKEN_WEBHOOK), "how long its answers count";
        "authentication-token-webhook-config-file": Text, Missing("", NO_TOKEN_WEBHOOK), "kubeconfig of a token webhook";
        "authentication-token-webhook-version": Text, Missing("v1beta1", NO_TOKEN_WEBHOOK), "version of the reviews that it gets";
        "client-ca-file": Text, Honoured, "CAs of client certificates; CN is the user, the Os are the groups";
        "enable-bootstrap-token-auth": Switch, Missing("false", "bootstrap tokens are not accepted"), "accept the tokens of Secrets in kube-system";
        "oidc-ca-file": Text, Missing("", NO_OIDC), "CAs of the issuer";
        "oidc-client-id": Text, Missing("", NO_OIDC), "audience of the tokens";
        "oidc-groups-claim": Text, Missing("", NO_OIDC), "claim with the groups";
        "oidc-groups-prefix": Text, Missing("", NO_OIDC), "prefix of groups";
        "oidc-issuer-url": Text, Missing("", NO_OIDC), "issuer of the tokens";
        "oidc-required-claim": Pairs, Missing("", NO_OIDC), "claims that a token must have";
        "oidc-signing-algs": List, Missing("RS256", NO_OIDC), "algorithms to accept";
        "oidc-username-claim": Text, Missing("sub", NO_OIDC), "claim with the user";
        "oidc-username-prefix": Text, Missing("", NO_OIDC), "prefix of users";
        "requestheader-allowed-names": List, Honoured, "common names of front proxies [any of --requestheader-client-ca-file]";
        "requestheader-client-ca-file": Text, Honoured, "CAs of front proxies, which name the user in headers";
        "requestheader-extra-headers-prefix": List, Honoured, "prefixes of their headers with extra attributes";
        "requestheader-group-headers": List, Honoured, "their headers with groups";
        "requestheader-uid-headers": List, Honoured, "their headers with the UID";
        "requestheader-username-headers": List, Honoured, "their headers with the user name";
        "service-account-extend-token-expiration": Switch, Honoured, "extend tokens of Pods to one year, with a warning after an hour [true]";
        "service-account-issuer": Each, Honoured, "issuer of service account tokens; of several the first issues, all are accepted";
        "service-account-jwks-uri": Text, Honoured, "URL of the key set in the discovery document";
        "service-account-key-file": Each, Honoured, "PEM file with public keys, private keys or certificates that verify tokens";
        "service-account-lookup": Switch, Needless("tokens are always looked up"), "refuse tokens of what is deleted";
        "service-account-max-token-expiration": Time, Honoured, "maximum lifetime of a token";
        "token-auth-file": Text, Honoured, "file with lines of TOKEN,USER,UID,\"GROUP1,GROUP2\"";
    }
    "Authorization" {
        "authorization-config": Text, Refused("use --authorization-mode"), "file with an AuthorizationConfiguration";
        "authorization-mode": List, Honoured, "authorizers in order: RBAC, AlwaysAllow, AlwaysDeny; Node is accepted without effect [AlwaysAllow]";
        "authorization-policy-file": Text, Refused("the mode ABAC is not supported: use RBAC"), "policies of the mode ABAC";
        "authorization-webhook-cache-authorized-ttl": Time, Missing("5m0s", "the mode Webhook is not supported"), "cache duration of allowed requests";
        "authorization-webhook-cache-unauthorized-ttl": Time, Missing("30s", "the mode Webhook is not supported"), "cache duration of denied requests";
        "authorization-webhook-config-file": Text, Refused("the mode Webhook is not supported: use RBAC"), "kubeconfig of the webhook that decides";
        "authorization-webhook-version": Text, Missing("v1beta1", "the mode Webhook is not supported"), "version of the reviews that it gets";
    }
    "API enablement" {
        "runtime-config": Pairs, Honoured, "GROUP/VERSION=true|false; an API that cannot be switched gives a warning";
    }
    "Egress selector" {
        "egress-selector-config-file": Text, Missing("", "webhooks are called directly"), "egress configuration";
    }
    "Admission" {
        "admission-control": List, Deprecated("Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version."), "exactly these plugins, instead of the default ones";
        "admission-control-config-file": Text, Honoured, "file with an AdmissionConfiguration: Pod Security, and credentials for webhooks by kubeConfigFile";
        "default-not-ready-toleration-seconds": Number, Missing("300", "it is 300 seconds"), "how long Pods stay on a node that is not ready [300]";
        "default-unreachable-toleration-seconds": Number, Missing("300", "it is 300 seconds"), "how long Pods stay on a node that cannot be reached [300]";
        "disable-admission-plugins": List, Honoured, "plugins to disable";
        "enable-admission-plugins": List, Honoured, "plugins to enable in addition to the default ones";
    }
    "Metrics" {
        "allow-metric-labels": Each, Missing("", "labels of metrics are as they are"), "values that labels may have";
        "allow-metric-labels-manifest": Text, Missing("", "labels of metrics are as they are"), "the same in a file";
        "disabled-metrics": List, Missing("", "all metrics are shown"), "metrics to leave out";
        "show-hidden-metrics-for-version": Text, Missing("", "no metrics are hidden"), "show what an older version had";
    }
    "Logs" {
        "log-flush-frequency": Time, Needless("lines are written at once"), "how often lines are written";
        "log-json-info-buffer-size": Text, Needless("lines are written at once"), "buffer of lines";
        "log-json-split-stream": Switch, Missing("false", "the log goes to standard error"), "information to standard output";
        "log-text-info-buffer-size": Text, Needless("lines are written at once"), "buffer of lines";
        "log-text-split-stream": Switch, Missing("false", "the log goes to standard error"), "information to standard output";
        "logging-format": Text, Honoured, "text or json [text]";
        "v": Level, Honoured, "log level: 0 warnings, 2 info, 4 debug, 6 and more trace [0]";
        "vmodule": Each, Missing("", "levels go by -v alone"), "levels by file";
    }
    "Traces" {
        "tracing-config-file": Text, Missing("", "no traces are sent"), "file with a TracingConfiguration";
    }
    "Misc" {
        "aggregator-reject-forwarding-redirect": Switch, Needless(NO_AGGREGATION), "refuse redirects of other API servers";
        "allow-privileged": Switch, Needless("privileged containers are allowed: Pod Security is what forbids them"), "allow privileged containers";
        "coordinated-leadership-lease-duration": Time, Missing("15s", NO_LEADERS), "life of its lease";
        "coordinated-leadership-renew-deadline": Time, Missing("10s", NO_LEADERS), "when it must be renewed";
        "coordinated-leadership-retry-period": Time, Missing("2s", NO_LEADERS), "how often that is tried";
        "enable-aggregator-routing": Switch, Missing("false", NO_AGGREGATION), "call other API servers by their endpoints";
        "enable-logs-handler": Switch, Deprecated("Log handler functionality is deprecated"), "serve /logs";
        "endpoint-reconciler-type": Text, Needless("the kubernetes Service leads to the server that started last"), "how servers agree on the kubernetes Service";
        "apiserver-count": Number, Deprecated("apiserver-count is deprecated and will be removed in a future version."), "how many servers there are";
        "event-ttl": Time, Honoured, "lifetime of Events after their last update, 0 for ever [1h]";
        "kubelet-certificate-authority": Text, Missing("", NO_KUBELET), "CAs of kubelets";
        "kubelet-client-certificate": Text, Missing("", NO_KUBELET), "client certificate for kubelets";
        "kubelet-client-key": Text, Missing("", NO_KUBELET), "key of that certificate";
        "kubelet-port": Number, Deprecated("kubelet-port is deprecated and will be removed."), "port of kubelets";
        "kubelet-read-only-port": Number, Deprecated("kubelet-read-only-port is deprecated and will be removed."), "another port of kubelets";
        "kubelet-preferred-address-types": List, Missing("Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP", NO_KUBELET), "which addresses of nodes to try";
        "kubelet-timeout": Time, Missing("5s", NO_KUBELET), "how long a kubelet may take";
        "kubernetes-service-node-port": Number, Missing("0", "the kubernetes Service has a cluster address only"), "port of the kubernetes Service on nodes";
        "max-connection-bytes-per-sec": Number, Missing("0", "connections are not slowed down"), "bytes per second of a connection";
        "peer-advertise-ip": Text, Needless(NO_PEERS), "address for other servers";
        "peer-advertise-port": Text, Needless(NO_PEERS), "port for other servers";
        "peer-ca-file": Text, Needless(NO_PEERS), "CAs of other servers";
        "proxy-client-cert-file": Text, Missing("", "webhooks are called without a certificate"), "client certificate for webhooks and other API servers";
        "proxy-client-key-file": Text, Missing("", "webhooks are called without a certificate"), "key of that certificate";
        "service-account-signing-endpoint": Text, Refused("tokens are signed with --service-account-signing-key-file"), "socket of a signer";
        "service-account-signing-key-file": Text, Honoured, "PEM file with the private key that signs tokens";
        "service-cluster-ip-range": Text, Honoured, "IPv4 network of Services [10.0.0.0/24]";
        "service-node-port-range": Text, Honoured, "node ports of Services [30000-32767]";
    }
}
