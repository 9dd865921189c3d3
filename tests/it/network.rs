//! File systems that may be on another machine: a FUSE of a few lines stands for them.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use anabranch::prelude::*;
use anabranch_tests::{in_a_namespace, scene};

const NO_SUCH_FILE: i32 = 2;
const NOT_OFFERED: i32 = 38;

/// Mounts an empty folder, and answers what the kernel asks about it until the process ends.
fn mount(folder: &Path) {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .unwrap();
    let kernel = device.try_clone().unwrap();
    let mounted = Command::new("mount")
        .args(["-i", "-t", "fuse", "-o"])
        .arg("fd=0,rootmode=40000,user_id=0,group_id=0")
        .arg("none")
        .arg(folder)
        .stdin(Stdio::from(device))
        .status();
    assert!(mounted.unwrap().success());
    thread::spawn(move || serve(kernel));
}

fn serve(mut kernel: File) {
    let mut request = vec![0; 1024 * 1024];
    while kernel.read(&mut request).is_ok_and(|length| length >= 40) {
        let operation = u32::from_ne_bytes(request[4..8].try_into().unwrap());
        let answer = match operation {
            // LOOKUP.
            1 => Err(NO_SUCH_FILE),
            // FORGET and BATCH_FORGET want none.
            2 | 42 => continue,
            // GETATTR: of the root; a folder.
            3 => Ok(attributes()),
            // STATFS.
            17 => Ok(vec![0; 80]),
            // INIT.
            26 => Ok(init()),
            _ => Err(NOT_OFFERED),
        };
        let (error, payload) = match answer {
            Ok(payload) => (0, payload),
            Err(error) => (-error, Vec::new()),
        };
        let length = u32::try_from(16 + payload.len()).unwrap();
        let mut reply = length.to_ne_bytes().to_vec();
        reply.extend(error.to_ne_bytes());
        reply.extend(&request[8..16]);
        reply.extend(payload);
        kernel.write_all(&reply).unwrap();
    }
}

fn init() -> Vec<u8> {
    let mut answer = vec![0; 64];
    answer[0..4].copy_from_slice(&7_u32.to_ne_bytes());
    answer[4..8].copy_from_slice(&31_u32.to_ne_bytes());
    // The most bytes of one write.
    answer[20..24].copy_from_slice(&4096_u32.to_ne_bytes());
    answer
}

fn attributes() -> Vec<u8> {
    let mut answer = vec![0; 16 + 88];
    answer[16..24].copy_from_slice(&1_u64.to_ne_bytes());
    let (mode, links) = (0o040_755_u32, 2_u32);
    answer[16 + 60..16 + 64].copy_from_slice(&mode.to_ne_bytes());
    answer[16 + 64..16 + 68].copy_from_slice(&links.to_ne_bytes());
    answer
}

#[tokio::test]
async fn a_file_system_that_may_be_remote_is_refused_unless_asked_for() {
    let Some(folder) = scene() else {
        let folder = tempfile::tempdir().unwrap();
        let test = "network::a_file_system_that_may_be_remote_is_refused_unless_asked_for";
        let words = "test -w /dev/fuse";
        return in_a_namespace(words, test, folder.path().to_str().unwrap());
    };
    mount(Path::new(&folder));
    let path = Path::new(&folder).join("app.db");
    let error = Database::open(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotOpen);
    let text = error.to_string();
    for part in [
        path.to_str().unwrap(),
        "FUSE",
        "memory that all processes share",
        "allow_network_file_system(true)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Asked for, it is SQLite that fails here: this one has no files.
    let error = Database::builder(&path)
        .allow_network_file_system(true)
        .open()
        .await
        .unwrap_err();
    assert!(error.sqlite_code().is_some(), "{error:?}");
    assert!(!error.to_string().contains("FUSE"), "{error}");
}
