//! The programs together: in virtual time, but for `hosted`, `window` and a part of `stream`.

mod adapt;
mod faults;
mod groups;
mod hosted;
mod mixed;
mod real;
mod stream;
mod streams;
mod window;
