//! The slot under shuttle.
