//! File systems that are, or may be, on another machine.
//!
//! By the number that Linux gives for each; elsewhere nothing is asked, and nothing refused. FUSE is among
//! them: its number is one for sshfs and S3 as for what is local, and a program behind it decides what a lock and
//! a shared mapping mean. `statfs` opens nothing.

use std::path::Path;

/// What the file system of this path is called, if it is one that is, or may be, on another machine: a database on it is
/// [not opened](crate::database::DatabaseBuilder::allow_network_file_system). Known on Linux only.
///
/// ```
/// use anabranch::engine::network_name;
///
/// assert_eq!(network_name(&std::env::temp_dir()), None);
/// ```
#[cfg(target_os = "linux")]
#[must_use]
pub fn network_name(path: &Path) -> Option<&'static str> {
    // What cannot be asked is left to SQLite.
    let found = rustix::fs::statfs(path).ok()?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the numbers have 32 bits, in a type of another width and sign on each architecture"
    )]
    name_of(found.f_type as u32)
}

/// What the file system of this path is called, if it is no local one: not known here.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn network_name(_path: &Path) -> Option<&'static str> {
    None
}

/// The name for a number, of those in `linux/magic.h` and in the file systems' own sources that are not local.
#[cfg(target_os = "linux")]
const fn name_of(number: u32) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9p",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0xaad7_aaea => "PanFS",
        0xbeef_dead => "StorNext",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x6573_5546 => {
            "FUSE (sshfs, S3 and the like are FUSE; what is local cannot be told from them)"
        }
        0xbacb_acbc => "a folder that VMware shares",
        0x786f_4256 => "a folder that VirtualBox shares",
        0x7c7c_6673 => "a folder that Parallels shares",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::engine::network::{name_of, network_name};

    #[test]
    fn what_is_on_another_machine_is_known_by_its_number() {
        let remote = [
            (0x6969, "NFS"),
            (0x517b, "SMB"),
            (0xff53_4d42, "SMB"),
            (0xfe53_4d42, "SMB"),
            (0x0102_1997, "9p"),
            (0x5346_414f, "AFS"),
            (0x0bd0_0bd0, "Lustre"),
            (0x00c3_6400, "Ceph"),
            (0x6573_5546, "FUSE"),
        ];
        for (number, name) in remote {
            let found = name_of(number).unwrap_or_default();
            assert!(found.starts_with(name), "{number:x}: {found}");
        }
        // ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS, F2FS, bcachefs, NTFS of the kernel.
        let local = [
            0xef53,
            0x5846_5342,
            0x9123_683e,
            0x0102_1994,
            0x794c_7630,
            0x2fc1_2fc1,
            0xf2f5_2010,
            0xca45_1a4e,
            0x7366_746e,
        ];
        for number in local {
            assert_eq!(name_of(number), None, "{number:x}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_left_to_sqlite() {
        assert_eq!(network_name("/there is no such file".as_ref()), None);
    }
}
