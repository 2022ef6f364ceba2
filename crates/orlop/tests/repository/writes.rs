//! Writes of objects: by the committer alone, and for requests that went through the pipeline.

use std::path::Path;

use crate::sources::{report, rust_files};

/// A call in the program text of a crate, and the files that have it.
struct Homes {
    folder: &'static str,
    call: &'static str,
    files: &'static [&'static str],
}

const HOMES: [Homes; 5] = [
    Homes { folder: "crates/store/src", call: "engine.commit(", files: &["committer.rs"] },
    // Commits for a store in another process, whose committer has made the batch.
    Homes { folder: "crates/store/src", call: "engine.commit_after(", files: &["remote/server.rs"] },
    Homes { folder: "crates/apiserver/src", call: "pipeline::answer(", files: &["api/mod.rs"] },
    // A call begins behind the pipeline, or is the server's own about the objects of a CRD.
    Homes { folder: "crates/apiserver/src", call: " Call {\n        api", files: &["verbs/mod.rs"] },
    // Beside the verbs: the mark of a selectable field that has no index yet, which is no object of the API.
    Homes {
        folder: "crates/apiserver/src",
        call: "store.write(",
        files: &[
            "crds/selectable_fields.rs",
            "verbs/binding.rs",
            "verbs/create.rs",
            "verbs/crd.rs",
            "verbs/namespace.rs",
        ],
    },
];

#[test]
fn objects_are_written_by_the_committer_for_requests_behind_the_pipeline() {
    let sources = rust_files();
    let mut offences = Vec::new();
    for Homes { folder, call, files } in HOMES {
        for source in &sources {
            let Ok(path) = source.path.strip_prefix(folder) else { continue };
            let is_test =
                path.iter().any(|part| part == "tests" || part == "tests.rs" || part == "conformance");
            let program = source.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(&source.text);
            let is_home = files.iter().any(|home| path == Path::new(home));
            if !is_test && program.contains(call) != is_home {
                offences.push(format!("{}: {call}", source.path.display()));
            }
        }
    }
    report("these files go around the committer or the pipeline, or are listed for nothing", &offences);
}
