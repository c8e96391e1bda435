//! The programs together: in virtual time, but for `hosted`.

mod adapt;
mod apart;
mod faults;
mod groups;
mod hosted;
mod mixed;
mod real;
mod steady;
mod streams;
