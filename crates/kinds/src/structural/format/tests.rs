//! String formats, and Kubernetes' messages about values that do not match.

use super::*;

/// Formats, matching texts, and texts that do not match.
const CASES: &[(&str, &[&str], &[&str])] = &[
    ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77bcf86cd79943901", "x07f1f77bcf86cd799439011"]),
    (
        "uri",
        &[
            "http://foo.bar/#com",
            "mailto:a@b.c",
            "/abs/dir",
            "http://foo.org:8080/",
            "http://u:p@h/",
            "*",
            "http://[::1]:80/",
        ],
        &["", "foobar.com", ".com", "./rel", "http://a b/", ":x", "http://h:port/", "/a%zz", "http://[::1/"],
    ),
    (
        "email",
        &["a@b.c", "Ann B <ann@example.com>", "\"a b\"@c.d", "a@[127.0.0.1]", "é@x.y"],
        &["", "a", "@b", "a@", "a..b@c", "a@b..c", "a b@c", "<a@b"],
    ),
    (
        "hostname",
        &["a", "a-b", "host.example.com", "é.com", "1.example.com"],
        &["", "-a", "my-host", "a.b1", "a..com", "a_b.com"],
    ),
    ("ipv4", &["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"], &["1.2.3", "::1", "1.2.3.256"]),
    ("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "::g", "fe80::1%eth0"]),
    ("cidr", &["10.0.0.0/8", "10.0.0.1/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]),
    (
        "mac",
        &["01:23:45:67:89:ab", "01-23-45-67-89-ab", "0123.4567.89ab"],
        &["01:23:45:67:89", "01:23:45:67:89:ag"],
    ),
    (
        "uuid",
        &["a8098c1a-f86e-11da-bd1a-00112444be1e", "A8098C1AF86E11DABD1A00112444BE1E"],
        &["a8098c1a", "g8098c1a-f86e-11da-bd1a-00112444be1e"],
    ),
    ("uuid3", &["bcd02e22-68f0-3046-a512-327cca9def8f"], &["bcd02e22-68f0-4046-a512-327cca9def8f"]),
    ("uuid4", &["025b0d74-00a2-4048-bf57-227c5111bb34"], &["025b0d74-00a2-4048-0f57-227c5111bb34"]),
    ("uuid5", &["886313e1-3b8a-5372-9b90-0c9aee199e5d"], &["886313e1-3b8a-4372-9b90-0c9aee199e5d"]),
    ("isbn", &["0321751043", "978-0321751041", "3 401 01319 X"], &["836217463", "978-0321751042"]),
    ("isbn10", &["0321751043"], &["978-0321751041"]),
    ("isbn13", &["978-0321751041"], &["0321751043"]),
    (
        "creditcard",
        &["4111-1111-1111-1111", "374953669708156"],
        &["4111-1111-1111-1112", "30190239451016", "1234"],
    ),
    ("ssn", &["111-11-1111"], &["111-1-11111", "111111111"]),
    ("hexcolor", &["#FFFFFF", "fff"], &["#ff", "#gggggg"]),
    ("rgbcolor", &["rgb(100,100,100)", "rgb(0,  31, 255)"], &["rgb(256,0,0)", "rgb(01,31,255)", "rgb(,1,2)"]),
    ("byte", &["ZWxpemFiZXRocG9zZXk=", "AAAA"], &["", "a", "ZWxpemFiZXRocG9zZXk"]),
    ("password", &["", "x"], &[]),
    ("date", &["2014-12-15", "2024-02-29"], &["2014-13-15", "2023-02-29", "14-12-15", "2014-12-15T"]),
    (
        "date-time",
        &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20z", "2014-12-15T19:30:20+01:00"],
        &["2014-12-15", "2014-12-15T24:00:00Z", "2014-12-15T19:30:20", "2014-12-15T19:30:60Z"],
    ),
    (
        "duration",
        &["1h30m", "22 ns", "3 days", "0", "-1.5h", "1µs", "5 seconds"],
        &["", "x", "5", "1 foo", "99999999999999999999s"],
    ),
    ("k8s-short-name", &["a-b", "1"], &["A", "-a", "a.b"]),
    ("k8s-long-name", &["a-b.c"], &["a..b", "A.b"]),
    ("int32", &["anything"], &[]),
];

#[test]
fn formats_match_valid_texts_only() {
    for (name, good, bad) in CASES {
        let format = Format::named(name);
        for text in *good {
            assert!(format.fits(text), "{name} {text:?}");
        }
        for text in *bad {
            assert!(!format.fits(text), "{name} {text:?}");
        }
    }
    assert!(!Format::named("int64").is_checked());
}
