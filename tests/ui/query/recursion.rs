//! What leads elsewhere is no recursion, a value is no table, and a condition is of the rows that it finds.

use anabranch::prelude::*;

#[derive(Debug, Entity)]
#[entity(has_many(files: File))]
struct Folder {
    #[entity(id)]
    id: i64,
    name: String,
}

#[derive(Debug, Entity)]
struct File {
    #[entity(id)]
    id: i64,
    #[entity(references = Folder, index)]
    folder_id: i64,
}

fn main() {
    let _ = Folder::query().recursive(Folder::FILES);
    let _ = Folder::query().select(Folder::NAME).as_table();
    let _: Fetch<Folder, Vec<File>> = Relation::when(Folder::NAME.eq("a"));
}
