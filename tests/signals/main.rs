//! What the library tells of itself: spans, events and instruments, and that no value is in them.
//!
//! A binary of its own, since subscriber and recorder are those of the whole process: the threads of the library tell as well.

mod capture;
mod instruments;
mod secret;
mod spans;
