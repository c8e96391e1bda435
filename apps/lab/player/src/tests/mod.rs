//! Tests of whole programs: in virtual time, except `hosted`, `window` and a part of `stream`.

mod adapt;
mod apart;
mod faults;
mod groups;
mod hosted;
mod mixed;
mod real;
mod steady;
mod stream;
mod streams;
mod window;
