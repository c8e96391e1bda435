//! The programs together, in virtual time.

mod adapt;
mod mixed;
mod real;
mod streams;
