//! The programs together: in virtual time, but for `hosted`.

mod adapt;
mod faults;
mod groups;
mod hosted;
mod mixed;
mod real;
mod streams;
mod window;
