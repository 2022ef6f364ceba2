//! The API server lists and watches by the informer, and reads pages by `Pages`: a lost history is handled in
//! one place.

use std::path::Path;

use crate::sources::{report, rust_files};

/// A call, and the files that may have it: beside the shared code the verbs, which list and watch for their
/// client.
const HOMES: [(&str, [&str; 2]); 3] = [
    (".watch(", ["informer.rs", "verbs/watch.rs"]),
    ("store.list(", ["pages.rs", "verbs/list.rs"]),
    (".more", ["pages.rs", "verbs/list.rs"]),
];

#[test]
fn the_api_server_has_one_list_watch_loop_and_one_page_loop() {
    let folder = Path::new("crates/apiserver/src");
    let mut offences = Vec::new();
    for source in rust_files() {
        let Ok(path) = source.path.strip_prefix(folder) else { continue };
        for (call, homes) in HOMES {
            let is_home = homes.iter().any(|home| path == Path::new(home));
            if source.text.contains(call) != is_home {
                offences.push(format!("{}: {call}", source.path.display()));
            }
        }
    }
    report("store watches are opened by the informer, and pages are read by Pages", &offences);
}
