//! Helpers that several tests share.

#![allow(dead_code)]

pub mod contention;
pub mod metal;
pub mod page;
pub mod readers;
pub mod sound;
pub mod validate;
